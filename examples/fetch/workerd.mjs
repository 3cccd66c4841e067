// Bundles the worker, and starts workerd with it: the runtime of Cloudflare Workers, by itself.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import workerd from "workerd";

const path = (file) => fileURLToPath(new URL(file, import.meta.url));

await build({ entryPoints: [path("worker.mjs")], outfile: path("dist/worker.mjs"), bundle: true, format: "esm" });

const address = `127.0.0.1:${process.env.PORT ?? 3000}`;
const child = spawn(workerd.default, ["serve", path("workerd.capnp"), `--socket-addr=http=${address}`, "--control-fd=3"], {
  stdio: ["ignore", "inherit", "inherit", "pipe"],
});
child.stdio[3].once("data", (line) => console.log(`Listening on http://127.0.0.1:${JSON.parse(line).port}`));
child.once("exit", (code) => process.exit(code ?? 0));
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => child.kill());
