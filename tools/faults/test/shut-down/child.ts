import { cases } from "./cases.js";

// Runs a case and reports it. Then the process must end by itself.
const [name, port] = process.argv.slice(2);
await cases[name as string]?.(Number(port));
console.log("nothing more to do");
