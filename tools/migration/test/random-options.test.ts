import { migrate } from "@floodgate/migrate";
import fc from "fast-check";
import { expect, it } from "vitest";
import { runs } from "../../../test/runs.js";
import { type App, exchange, type Reply } from "./exchange.js";
import { holdClock } from "./harness.js";
import { load } from "./page.js";

holdClock();

/** An option as apps may write it. */
const written = (name: string, ...values: string[]): fc.Arbitrary<string> =>
  fc.constantFrom(...values.map((value) => (/^(async )?\w*\(.*\) \{/.test(value) ? value : `${name}: ${value}`)));

const asFunctions = (name: string, parameters: string, body: string): string[] => [
  `(${parameters}) => ${body}`,
  `(${parameters}) => { return ${body}; }`,
  `function (${parameters}) { return ${body}; }`,
  `async (${parameters}) => ${body}`,
  `${name}(${parameters}) { return ${body}; }`,
];

const options = {
  window: written("windowMs", "60_000", "60 * 1000", "15 * 60 * 1000", "1000 * 60 * 60", "6e4", "24 * 3_600_000"),
  limit: fc.oneof(
    written("limit", "0", "1", "2", "3"),
    written("max", "1", "2", ...asFunctions("max", "req, res", "2")),
    written("limit", ...asFunctions("limit", "req", "req.get('x-key') === 'a' ? 1 : 3")),
  ),
  key: written(
    "keyGenerator",
    ...asFunctions("keyGenerator", "req", "req.get('x-key')"),
    ...asFunctions("keyGenerator", "req, res", "'user ' + req.get('x-key')"),
  ),
  skip: written(
    "skip",
    ...asFunctions("skip", "req", "req.get('x-skip') === '1'"),
    ...asFunctions("skip", "req, res", "req.path === '/free'"),
  ),
  status: written("statusCode", "420", "503", "429"),
  message: written(
    "message",
    "'Slow down'",
    "{ error: 'slow', list: [1, 2] }",
    '"é \\"quoted\\""',
    "`text`",
    ...asFunctions("message", "req, res", "'no ' + req.get('x-key')"),
  ),
  standard: written("standardHeaders", "true", "false", "'draft-6'", "'draft-7'", "'draft-8'"),
  legacy: written("legacyHeaders", "true", "false"),
  successful: written("skipSuccessfulRequests", "true", "false"),
  failed: written("skipFailedRequests", "true", "false"),
  was: written("requestWasSuccessful", ...asFunctions("requestWasSuccessful", "req, res", "res.statusCode < 300")),
  property: written("requestPropertyName", "'limits'"),
  validate: written("validate", "false", "{ trustProxy: false }"),
};

const call = fc
  .record(options, { requiredKeys: ["window", "limit", "key"] })
  .chain((given) => fc.shuffledSubarray(Object.values(given), { minLength: Object.keys(given).length }));

const request = fc.record({
  path: fc.constantFrom("/", "/", "/free"),
  headers: fc.record({
    "x-key": fc.constantFrom("a", "b"),
    "x-skip": fc.constantFrom("0", "0", "0", "1"),
    "x-status": fc.constantFrom("200", "200", "302", "404", "500"),
  }),
});

const codeOf = (given: readonly string[]): string => `import express from "express";
import { rateLimit } from "express-rate-limit";
export const app = express();
app.use(rateLimit({ ${given.join(", ")} }));
app.use((req, res) => void res.status(Number(req.get("x-status"))).send("served"));
`;

/** What both libraries say alike: the legacy headers and those of draft 6 but for times, and the texts that the app has chosen. */
function seen({ status, headers, body }: Reply): unknown {
  const {
    "x-ratelimit-limit": limit,
    "x-ratelimit-remaining": remaining,
    "ratelimit-limit": limit6,
    "ratelimit-remaining": remaining6,
  } = headers;
  const isOurs = body.startsWith('{"type":"https://iana.org') || body === "Too many requests, please try again later.";
  return { status, limit, remaining, limit6, remaining6, body: isOurs ? undefined : body };
}

it("apps decide and answer with migrated options as they did with express-rate-limit's", async () => {
  await fc.assert(
    fc.asyncProperty(call, fc.array(request, { minLength: 1, maxLength: 8 }), async (given, requests) => {
      const code = codeOf(given);
      const migration = migrate("express-rate-limit", "app.ts", code);
      fc.pre(migration?.byHand.length === 0);
      const [before, after] = [code, migration?.code ?? ""];
      expect(migrate("express-rate-limit", "app.ts", after)?.code ?? after).toBe(after);
      const theirs = await exchange((await load<{ app: App }>(before)).app, requests);
      const ours = await exchange((await load<{ app: App }>(after)).app, requests);
      expect(ours.map(seen), after).toEqual(theirs.map(seen));
    }),
    runs(60),
  );
});
