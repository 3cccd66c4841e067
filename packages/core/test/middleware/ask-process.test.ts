import { expect, it } from "vitest";
import { memoryStore } from "../../../store-memory/src/index.js";
import { RateLimit, type RateLimitOptions } from "../../src/adapter.js";
import { type AskedRequest, askProcess, type Reason } from "../../src/rules.js";
import { reader } from "../reader.js";

const limit = { limit: 5, window: "365d" } as const;
const never = (): never => expect.fail("A function of the app was called");

/** What the rules of one middleware say of a request. */
async function ask(options: RateLimitOptions<object, string>, request: Partial<AskedRequest> = {}): Promise<Reason[]> {
  const middleware = new RateLimit("rateLimit", options, [], reader, (own) => memoryStore({ maxKeys: 10, ...own }));
  const asked = { method: "GET", path: "/", headers: {}, ip: "203.0.113.7", plan: undefined, keys: {}, ...request };
  const reasons = await askProcess(asked).finally(() => middleware.close());
  return reasons.filter(({ rule }) => rule === "asked");
}

it("only a real request can answer a function of the request for the policy or the match, and no function is called", async () => {
  const why = (option: string) => `its \`${option}\` is a function of the request, which only a real request can answer`;
  const unknown = (option: string) => [{ rule: "asked", shadow: false, says: "unknown", why: why(option) }];
  expect(await ask({ name: "asked", policy: never })).toEqual(unknown("policy"));
  expect(await ask({ rules: [{ name: "asked", ...limit, match: never }] })).toEqual(unknown("match"));
});

it("the app's own keys are given by name, in the order of the rule, and that of a key function by the name of its rule", async () => {
  const keys = { user: never, team: never };
  const given = { keys: { team: "red", user: "ann", asked: "by function" }, headers: { "x-a": "1" } };
  const counted = async (key: unknown) =>
    (await ask({ rules: [{ name: "asked", ...limit, key: key as "ip" }], keys }, given)).map((reason) =>
      reason.says === "counts" ? reason.key : reason,
    );
  expect(await counted(["user", "ip", "team", "header:x-a"])).toEqual(["(ann,203.0.113.7,red,1)"]);
  expect(await counted(never)).toEqual(["by function"]);
});

it("asks for a cost of 1, whatever a real request costs", async () => {
  expect(await ask({ name: "asked", ...limit, cost: never })).toMatchObject([
    { says: "counts", cost: 1, decision: { cost: 1, remaining: 5 } },
  ]);
});

it("names what a request lacks", async () => {
  const keys = { user: never };
  const lacks = async (key: unknown) =>
    (await ask({ rules: [{ name: "asked", ...limit, key: key as "ip", onMissingKey: "error" }], keys }, { ip: undefined })).map((reason) =>
      "why" in reason ? reason.why : reason,
    );
  const fails = "the app fails with FLOODGATE_";
  expect(await lacks(["user", "ip", "header:x-a"])).toEqual([`no key (give ip and header:x-a and the key user): ${fails}MISSING_KEY`]);
  expect(await lacks(never)).toEqual([`no key (give the key asked): ${fails}MISSING_KEY`]);
  expect(await lacks("header:constructor")).toEqual([`no key (give header:constructor): ${fails}MISSING_KEY`]);
  expect(await lacks("route")).toEqual([`no key (give a route): ${fails}NO_ROUTE`]);
});
