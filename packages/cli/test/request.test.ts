import { rateLimit } from "@floodgate/express";
import { parseRules } from "@floodgate/rules";
import express from "express";
import fc from "fast-check";
import { parseList } from "structured-headers";
import supertest from "supertest";
import { describe, expect, it, test } from "vitest";
import { runs } from "../../../test/runs.js";
import { floodgate } from "./command.js";
import { limits, tempFolder } from "./files.js";

const { write } = tempFolder();
const file = write("limits.yaml", limits);

const ask = (...args: string[]) => floodgate(["check", file, "--request", ...args]);

describe("check --request", () => {
  it("lists the rules that count the request, and why the others do not", async () => {
    const { code, out } = await ask("POST /posts?x=1", "--ip", "2001:db8::5", "--key", "user=42", "--plan", "pro");
    expect(code).toBe(0);
    expect(out).toBe(
      `${file}: 3 rules, no problems

POST /posts?x=1 is counted by
  rule    by    key            policy                              cost  mode
  posts   user  42             5 per 365d, fixed-window            1     enforce
  per-ip  ip    2001:db8::/56  2 per 365d, sliding-window-counter  1     enforce

and not by
  rule   why
  login  path: the rule matches /login
`,
    );
  });

  it("prints JSON with --json", async () => {
    const { out } = await ask("post /login", "--ip", "203.0.113.9", "--key", "user=ann", "--header", "X-App: web", "--json");
    expect(JSON.parse(out)).toEqual({
      file,
      rules: 3,
      problems: [],
      request: [
        { rule: "posts", counts: false, by: "user", mode: "enforce", why: "path: the rule matches /posts" },
        {
          rule: "per-ip",
          counts: true,
          by: "ip",
          mode: "enforce",
          key: "203.0.113.9",
          policy: "2 per 365d, sliding-window-counter",
          cost: 1,
        },
        {
          rule: "login",
          counts: true,
          by: "ip, user",
          mode: "shadow",
          key: "(203.0.113.9,ann)",
          policy: "5 per 15m, sliding-window-counter",
          cost: 1,
        },
      ],
    });
  });

  it.each([
    [["GET /posts"], "posts   method: the rule matches POST"],
    [["POST /login", "--header", "x-app: tv"], "login   header: the rule matches requests with x-app: web or ios"],
    [["POST /posts"], "posts   no key (--key user=... or --ip ...): the app fails with FLOODGATE_NO_CLIENT_IP"],
    [["/"], "per-ip  no key (--ip ...): the app fails with FLOODGATE_NO_CLIENT_IP"],
    [["POST /login", "--header", "x-app: ios"], "login   no key (--ip ... --key user=...): not counted (mode: shadow)"],
  ])("says why a rule does not count: %o", async (args, text) => {
    expect((await ask(...args)).out).toContain(text);
  });
});

test("a rule that fails decides for the other rules", async () => {
  const text = "rules:\n  - { name: a, key: user, onMissingKey: error, limit: 1, window: 1m }\n  - { name: b, limit: 1, window: 1m }\n";
  const { out } = await floodgate(["check", write("failing.yaml", text), "--request", "/", "--ip", "::1"]);
  expect(out).toContain("no key (--key user=...): the app fails with FLOODGATE_MISSING_KEY");
  expect(out).toContain("b     a decides for the whole request");
});

test("an unknown plan is noted, and the rules' own policies apply", async () => {
  const { code, out, err } = await ask("POST /posts", "--ip", "::1", "--key", "user=42", "--plan", "por");
  expect(code).toBe(0);
  expect(err).toBe(
    'floodgate: the rules have no plan "por". Did you mean "pro"? Plans: pro. The rule\'s own policy is shown, which applies to all other plans.\n',
  );
  expect(out).toContain("posts   user  42     1 per 365d");
  expect((await ask("POST /posts", "--ip", "::1", "--key", "user=42", "--plan", "pro")).err).toBe("");
});

test("a header may have any name", async () => {
  const rules = "rules:\n  - { name: a, limit: 1, window: 1m, key: global, match: { header: { constructor: true } } }\n";
  const counts = async (...args: string[]) =>
    JSON.parse((await floodgate(["check", "-", "--json", "--request", "/", ...args], rules)).out).request[0].counts;
  expect(await counts()).toBe(false);
  expect(await counts("--header", "Constructor: 1")).toBe(true);
});

test.each(["42", "(a2,b)", "\\(a2,b)"])("--key takes a key as it is printed: %s", async (key) => {
  const rules = "rules:\n  - { name: a, limit: 1, window: 1m, key: user }\n";
  const { out } = await floodgate(["check", "-", "--request", "/", "--key", `user=${key}`, "--json"], rules);
  expect(JSON.parse(out).request).toMatchObject([{ counts: true, key }]);
});

test("a cost that only the app knows is shown by its name", async () => {
  const rules = "rules:\n  - { name: a, limit: 1, window: 1m, cost: tokens }\n";
  const { out } = await floodgate(["check", "-", "--request", "/", "--ip", "::1", "--json"], rules);
  expect(JSON.parse(out).request).toMatchObject([{ counts: true, cost: "tokens" }]);
});

const ruleOf = fc.record(
  {
    match: fc.record(
      {
        method: fc.constantFrom("GET", "POST", ["PUT", "post"]),
        path: fc.constantFrom("/a", "/a/:id", "/b/*", ["/a", "/c"]),
        header: fc.constantFrom({ "x-user": true }, { "x-user": false }, { "X-Tenant": "t*" }, { "x-tenant": ["t1", "u1"] }),
      },
      { requiredKeys: [] },
    ),
    key: fc.constantFrom("ip", "user", "global", "header:x-tenant", ["ip", "user"], ["user", "header:x-tenant"]),
    plans: fc.constantFrom({ pro: { limit: 500 } }),
    exempt: fc.constantFrom({ ips: ["10.0.0.0/8"] }, { keys: ["ann", 42] }),
    onMissingKey: fc.constantFrom("reject", "error"),
  },
  { requiredKeys: [] },
);
const sets = fc.record(
  {
    exempt: fc.constant({ ips: ["192.0.2.0/24"] }),
    rules: fc
      .array(ruleOf, { minLength: 1, maxLength: 6 })
      .map((rules) => rules.map((rule, i) => ({ name: `r${i}`, limit: 100 + i, window: "1m", onMissingKey: "skip", ...rule }))),
  },
  { requiredKeys: ["rules"] },
);
const requests = fc.record({
  method: fc.constantFrom("GET", "POST", "PUT", "DELETE"),
  path: fc.constantFrom("/", "/a", "/A/", "/%61?b=/c", "/a/1", "/b", "/b/c/d", "/c"),
  ip: fc.constantFrom("203.0.113.9", "10.1.2.3", "192.0.2.7", "2001:db8::1"),
  user: fc.constantFrom(undefined, "ann", "42", "bob"),
  tenant: fc.constantFrom(undefined, "t1", "u1"),
  plan: fc.constantFrom(undefined, "pro", "free"),
});

test("check --request names the rules that an Express app reports in RateLimit-Policy", async () => {
  await fc.assert(
    fc.asyncProperty(sets, requests, async (set, { method, path, ip, user, tenant, plan }) => {
      const text = JSON.stringify(set);
      const app = express().set("trust proxy", 1);
      const rules = { current: parseRules(text), subscribe: () => () => undefined };
      app.use(rateLimit({ rules, keys: { user: (req) => req.get("x-user") }, plan: (req) => req.get("x-plan") }));
      app.use((_req, res) => void res.sendStatus(204));
      const headers = { "x-user": user, "x-tenant": tenant, "x-plan": plan };
      const sent = Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
      const verb = method.toLowerCase() as "get" | "post" | "put" | "delete";
      const response = await supertest(app)[verb](path).set("x-forwarded-for", ip).set(Object.fromEntries(sent));
      const counting = parseList(response.get("RateLimit-Policy") ?? "").map(([name, parameters]) => `${name} ${parameters.get("q")}`);

      const { out } = await floodgate(
        [
          ...["check", "-", "--json", "--request", `${method} ${path}`, "--ip", ip],
          ...sent.flatMap(([name, value]) => ["--header", `${name}: ${value}`]),
          ...(user === undefined || !text.includes('"user"') ? [] : ["--key", `user=${user}`]),
          ...(plan === undefined ? [] : ["--plan", plan]),
        ],
        text,
      );
      const { request } = JSON.parse(out) as { request: { rule: string; counts: boolean; policy: string; why?: string }[] };
      expect(request.filter(({ counts }) => counts).map(({ rule, policy }) => `${rule} ${Number.parseInt(policy, 10)}`)).toEqual(counting);
      const whys = request.flatMap(({ why }) => why ?? []);
      const status = whys.some((why) => why.includes("the app fails")) ? 500 : whys.some((why) => why.includes("429")) ? 429 : 204;
      expect(response.status).toBe(status);
    }),
    runs(100),
  );
});
