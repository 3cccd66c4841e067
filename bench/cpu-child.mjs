import inject from "light-my-request";
import { serve } from "./lib/child.mjs";

const [framework, kind, remoteAddress] = process.argv.slice(2);

const { listener } = await import(`./http/${framework}.mjs`);
const handle = listener(kind);
const request = { method: "GET", url: "/", remoteAddress, headers: { host: "bench" } };
const expected = kind.includes("denied") ? 429 : 200;

/** Measures the CPU time of one request, in microseconds. */
serve(async (requests) => {
  let others = 0;
  const before = process.cpuUsage();
  for (let i = 0; i < requests; i++) {
    const { statusCode } = await inject(handle, request);
    if (statusCode !== expected) others++;
  }
  const { user, system } = process.cpuUsage(before);
  // The first request passes before the limit is reached.
  if (others > 1) throw new Error(`${others} of ${requests} responses were not ${expected}`);
  return (user + system) / requests;
});
