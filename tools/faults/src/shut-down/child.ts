import { cases } from "./cases.js";

// Does what a case says, tells so, and then ends by itself or never.
const [name, port] = process.argv.slice(2);
await cases[name as string]?.(Number(port));
console.log("nothing more to do");
