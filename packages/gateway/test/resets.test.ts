import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { gateway } from "../src/index.js";
import { few, Log, startServe, temporaryFolder } from "./world.js";

const upgrade = "Connection: upgrade\r\nUpgrade:";
const post = "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10\r\n";

/** What a client sends before it resets its connection. */
const cut = [
  "",
  "GET / HTTP/1.1\r\nHost: localh",
  "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
  "no request\r\n\r\n",
  "CONNECT shop.example:443 HTTP/1.1\r\nHost: shop.example\r\n\r\n",
  `GET / HTTP/1.1\r\nHost: localhost\r\n${upgrade} websocket\r\n\r\n`,
  `GET / HTTP/1.1\r\nHost: localhost\r\n${upgrade} h2c\r\n\r\n`,
  `${post}\r\n{}`,
  `${post}Expect: 100-continue\r\n\r\n`,
  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
];

it("A client that resets its connection, at whatever point, ends none of the servers and writes no line for each try", async () => {
  const served = await startServe([few(1)], { admin: "127.0.0.1:0", apiListen: "127.0.0.1:0", rls: "127.0.0.1:0" });
  const rules = join(temporaryFolder(), "limits.json");
  writeFileSync(rules, JSON.stringify({ rules: [few(1)] }));
  const log = new Log();
  // Nobody listens at the upstream.
  const common = { rules, upstream: "http://127.0.0.1:9", listen: "127.0.0.1:0", admin: false, drainMs: 0, closeMs: 100 } as const;
  const proxying = await gateway({ ...common, logFormat: "json" }, { log });
  onTestFinished(() => proxying.close());
  const addresses = [...Object.values(served.running.addresses), ...Object.values(proxying.addresses)];
  expect(addresses).toHaveLength(5);
  for (const address of addresses) {
    for (const bytes of cut) await Promise.all(Array.from({ length: 5 }, (_, i) => reset(address, bytes, i)));
  }
  for (const address of addresses) await reset(address, "", 0);
  const failures = [...served.log.lines, ...log.lines].filter(({ level }) => level === "error");
  expect(failures).toEqual([]);
}, 30_000);

/** Sends bytes and resets the connection: at once, or some turns of the event loop later. */
function reset(address: string, bytes: string, turns: number): Promise<void> {
  const port = Number(address.split(":").at(-1));
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1")
      .on("error", reject)
      .on("close", () => resolve());
    const wait = (left: number): void => {
      if (left > 0) setImmediate(wait, left - 1);
      else socket.resetAndDestroy();
    };
    socket.once("connect", () => socket.write(bytes, () => wait(turns)));
    // The server may be first.
    socket.off("error", reject).on("error", () => resolve());
  });
}
