// A process with the driver of Deno KV.
import { denoKv } from "../src/deno-kv.js";
import { answerWith } from "./worker.mjs";

const kv = await Deno.openKv(Deno.args[0]);
const onListen = ({ port }) => console.log(port);
Deno.serve({ hostname: "127.0.0.1", port: 0, onListen }, (request) => answerWith({ kv: () => denoKv(kv) }, request));
