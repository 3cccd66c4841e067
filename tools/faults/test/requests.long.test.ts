import { slidingWindowCounter, tokenBucket } from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";
import fc from "fast-check";
import { it } from "vitest";
import { type App, appOf, close, type Limits, listen } from "./apps.js";
import { type Answer, Browser } from "./http.js";

/** The characters that HTTP allows in a header value. */
const headerText = fc.string({
  unit: fc
    .integer({ min: 0x20, max: 0xff })
    .filter((code) => code !== 0x7f)
    .map((code) => String.fromCharCode(code)),
  maxLength: 60,
});
const address = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.constantFrom("::ffff:1.2.3.4", "[::1]:80", "fe80::1%eth0", "1.2.3.4:80", "01.2.3.4", "unknown", "_hidden", "127.0.0.1", "::", ""),
  headerText,
);
const pathText = fc.string({ unit: fc.constantFrom(..."ab/.%2fF:*?\\;@~"), maxLength: 40 }).map((text) => `/${text}`);

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string | string[]>;
}

const sent: fc.Arbitrary<Sent> = fc.record({
  method: fc.constantFrom("GET", "HEAD", "POST", "DELETE", "OPTIONS", "PROPFIND", "M-SEARCH"),
  path: pathText,
  headers: fc.record(
    {
      "x-forwarded-for": fc.oneof(
        fc.array(address, { maxLength: 80 }).map((list) => list.join(",")),
        fc.array(address, { maxLength: 4 }),
      ),
      forwarded: headerText,
      "x-real-ip": address,
      "cf-connecting-ip": address,
      "x-client": headerText,
      ratelimit: headerText,
      "x-http-method-override": headerText,
    },
    { requiredKeys: [] },
  ),
});

/** Requests in flight at once. */
const burst = fc.array(sent, { minLength: 20, maxLength: 20 });

function limits(): Limits {
  return {
    store: memoryStore({ maxKeys: 100 }),
    clientIp: { trustedProxies: ["loopback", "10.0.0.0/8"] },
    onMissingKey: "skip",
    headers: ["standard", "legacy"],
    rules: [
      { name: "per-ip", limit: 1000, window: "1s" },
      { name: "client", key: ["ip", "header:x-client"], policy: tokenBucket({ capacity: 2, refill: 1, every: "10ms" }) },
      {
        name: "some",
        match: { path: ["/a/:b/*", "/*/ab"], method: ["GET", "POST"] },
        key: "route",
        policy: slidingWindowCounter({ limit: 5, window: "10ms" }),
      },
    ],
  };
}

it("requests with hostile methods, paths and headers get well-formed answers", { timeout: 240_000 }, async () => {
  const apps: App[] = [appOf.Express(limits()), appOf.Koa(limits()), appOf.Hono(limits())];
  const ports = await Promise.all(apps.map(({ server }) => listen(server)));
  const browser = new Browser();
  const property = fc.asyncProperty(burst, async (messages) => {
    const answers = await Promise.all(messages.map((message, i) => browser.send({ port: ports[i % ports.length] as number, ...message })));
    answers.forEach(checkAnswer);
  });
  try {
    await fc.assert(property, { numRuns: 2500 });
  } finally {
    browser.close();
    for (const { server } of apps) close(server);
  }
});

/** Checks the draft's list headers and the old single headers. */
function checkAnswer(answer: Answer | string): void {
  if (typeof answer === "string") throw new Error(`No answer: ${answer}`);
  const { status, headers } = answer;
  if (![200, 400, 404, 429].includes(status)) throw new Error(`Status ${status}`);
  const { ratelimit, "retry-after": retryAfter } = headers;
  if (ratelimit !== undefined && !/^("[a-z-]+";r=\d+(;t=\d+)?(, )?)+$/.test(`${ratelimit}`)) throw new Error(`RateLimit: ${ratelimit}`);
  if ((status === 429) !== /^[1-9]\d*$/.test(retryAfter ?? "")) throw new Error(`Status ${status} with Retry-After: ${retryAfter}`);
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith("x-ratelimit") && !/^\d+$/.test(`${value}`)) throw new Error(`${name}: ${value}`);
  }
}
