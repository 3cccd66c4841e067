import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { gateway, serve } from "../../src/index.js";
import { Log, temporaryFolder } from "../world.js";

const free = { listen: "127.0.0.1:0", admin: false, drainMs: 0, upstream: "http://127.0.0.1:1" } as const;

/** The error of a service with one rule. */
async function refusal(service: typeof gateway | typeof serve, rule: string): Promise<string> {
  const rules = join(temporaryFolder(), "limits.yaml");
  writeFileSync(rules, `rules: [{ name: a, ${rule} }]`);
  const { upstream, ...asked } = free;
  const started = service === gateway ? gateway({ ...free, rules }, { log: new Log() }) : serve({ ...asked, rules }, { log: new Log() });
  return started.then(
    (running) => running.close().then(() => "none"),
    (error: Error) => error.message,
  );
}

const limit = "limit: 5, window: 1m";

describe.each([
  ["gateway", gateway],
  ["serve", serve],
] as const)("what floodgate %s says of a wrong rule", (_, service) => {
  it.each([
    [`${limit}, key: user`, "--key user=header:x-user."],
    [`${limit}, key: "x y"`, "`key` must be a name or a list of names"],
    [`${limit}, cost: tokens`, '"tokens", but only an app can define such a name. Write a number.'],
    [`${limit}, cost: "a:b"`, '"a:b", but only an app can define such a name. Write a number.'],
    [`${limit}, settle: tokens`, service === gateway ? "settle: header:x-cost." : "Remove `settle`."],
    [`${limit}, settle: "a:b"`, "settle: header:x-cost."],
    [`${limit}, refundWhen: x`, '`refundWhen` must be a list of statuses, but was "x". Write refundWhen: "5xx".'],
    [`${limit}, plans: { pro: { limit: 9 } }`, "--plan header:x-plan."],
    [`${limit}, key: route`, "counts by route, but a gateway knows no routes. Write the path of the route: match: { path: /users/:id }."],
    [`${limit}, key: [ip, route]`, "a gateway knows no routes"],
    ["policy: { algorithm: concurrency, limit: 5, hold: 30s }, key: route, match: { method: POST }", "a gateway knows no routes"],
  ])("speaks of rules and flags, not of JavaScript: %s", async (rule, message) => {
    const told = await refusal(service, rule);
    expect(told).toContain(message);
    expect(told).toMatch(/limits\.yaml:1:\d+: /);
    expect(told).not.toMatch(/=>|function/);
  });
});
