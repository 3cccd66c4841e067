import assert from "node:assert/strict";
import { fixedWindow } from "@floodgate/core";
import type { LimitSetup, Step } from "./adapter.js";
import type { AdapterSuite, App } from "./web.js";

const policy = fixedWindow({ limit: 1000, window: "1m" });

/** Request targets, some of which a router maps to `/posts`. */
const spellings = [
  ...[
    "/posts",
    "/POSTS",
    "/posts/",
    "/posts//",
    "//posts",
    "/posts?x",
    "/posts?/y",
    "/posts#x",
    "/posts/#x",
    "*posts",
    "/posts;a=b",
    "/posts%2F",
    "/posts%3Fx",
  ],
  ...[
    "/p%6Fsts",
    "/%70osts",
    "/%2Fposts",
    "/./posts",
    "/posts/.",
    "/x/../posts",
    "/posts/..",
    "/posts%20",
    "/posts%00",
    "/posts\\",
    "/\\posts#",
  ],
  ...[
    "/x\\..\\posts#",
    "http://elsewhere.example/posts",
    "http://elsewhere.example/posts/?x",
    "HTTP://elsewhere.example:80/POSTS",
    "http://u:p@elsewhere.example/posts",
  ],
];

/** Targets that may reach the route at a path, either directly or after the framework has parsed them. */
function targetsOf(path: string): string[] {
  const tail = path.slice(path.lastIndexOf("/"));
  const head = path.slice(0, path.lastIndexOf("/"));
  return [
    ...[path, `${path}#`, `${path}\xa0`, `${path}?x#`, `${path}/`, path.toUpperCase()],
    ...[`*${path.slice(1)}`, `http://h${path}`, `http://h${head}\\${tail.slice(1)}`, `http://h'${path}`, `//a@b${path}#`],
    ...[`${head}//a@b${tail}#`, `${head}'${tail}#`, `${head}'/1${tail}#`, `${head}\\${tail.slice(1)}#`, `${head}''/12${tail}#`],
  ];
}

/** Rules match the same path that routers route by. */
export function pathCases({ adapter, effort, it }: AdapterSuite): void {
  const route = (path: string): Step => ({ route: path });
  const mounted = (app: boolean, path: string, ...steps: Step[]): Step => ({ router: path, steps, app });

  /** In a sub-router the limit is on the route: Koa routers run other middlewares only if the path has the exact case of the prefix. */
  const limited = (path: string, inApp: boolean): Step[] => (inApp ? [{ limit: 0 }, route(path)] : [{ route: path, limits: [0] }]);

  /** Requests all targets and returns how many reached a route. Fails if one of them was not counted under the rule. */
  const reached = async (app: App, rule: string, targets: readonly string[]): Promise<number> => {
    let served = 0;
    for (const target of targets) {
      const response = await app.get(target).catch(() => undefined);
      if (response?.status !== 200) continue;
      served++;
      assert.match(response.lines("ratelimit")[0] ?? "", new RegExp(`"${rule}"`), JSON.stringify(target));
    }
    return served;
  };

  for (const router of ["", "/api"]) {
    it(`rules match every spelling of a target that reaches the route (mounted on ${router === "" ? "all requests" : "a sub-router"})`, async (web) => {
      const steps: Step[] = [{ limit: 0 }, { route: "/posts" }];
      const app = await web.start({
        limits: [{ rules: [{ name: "rule", policy, match: { path: `${router}/posts` } }] }],
        steps: router === "" ? steps : [{ router, steps }],
      });
      const targets = spellings.map((spelling) => spelling.replace(/^(https?:\/\/[^/]+)?/i, `$1${router}`));
      assert.ok((await reached(app, "rule", targets)) >= 5);
    });
  }

  it("rules match what follows a malformed port, which is the path to some routers", async (web) => {
    const limit: LimitSetup = { rules: [{ name: "rule", policy, match: { path: "/:id" } }] };
    const app = await web.start({ limits: [limit], steps: [{ limit: 0 }, route("/:id")] });
    await reached(app, "rule", ["http://h:80posts", "HTTP://h:posts", "http://u:p@h:80posts?x"]);
  });

  it("no spelling evades a rule for a route with encoded characters, which some routers take literally", async (web) => {
    let served = 0;
    for (const path of ["/%41", "/%2541", "/a%2Fb", "/a%3Ab", "/caf%C3%A9", "/caf%c3/:id", "/caf%25", "/caf%"]) {
      const app = await web.start({
        limits: [{ rules: [{ name: "encoded", policy, match: { path } }] }],
        steps: [{ limit: 0 }, route(path)],
      });
      const literal = path.replaceAll("%", "%25");
      const spelled = [path, literal, literal.replaceAll("%", "%25"), path.replace("%41", "A").replace("%3A", ":").replace("%25", "%")];
      served += await reached(app, "encoded", [...spelled, ...spelled.map((target) => target.toLowerCase())]);
    }
    assert.ok(served >= 8);
  });

  it("answers 400 to an ambiguous path if a rule or the middleware says so, unless the rule is in shadow mode", async (web) => {
    const rule = { name: "all", policy };
    const limits = [
      { rules: [{ ...rule, ambiguousPath: "reject" as const }] },
      { ambiguousPath: "reject" as const, rules: [rule] },
      { ambiguousPath: "reject" as const, rules: [{ ...rule, ambiguousPath: "count" as const }] },
      { ambiguousPath: "reject" as const, rules: [{ ...rule, mode: "shadow" as const }] },
    ];
    for (const [i, status] of [400, 400, 200, 200].entries()) {
      const app = await web.start({ limits: [limits[i] as (typeof limits)[0]], steps: [{ limit: 0 }, route("/:id")] });
      const ambiguous = await app.get("/a%5Cb");
      assert.equal(ambiguous.status, status);
      if (status === 400)
        assert.equal(ambiguous.lines("content-type").join().split(";")[0], adapter.problemType ?? "application/problem+json");
      assert.equal((await app.get("/a%2Fb")).status, 200);
    }
  });

  for (const [kind, isApp] of [
    ["sub-routers", false],
    ["sub-apps", true],
  ] as const) {
    it(`no spelling evades a rule in ${kind} of ${kind}`, async (web) => {
      const rules = [{ name: "login", policy, match: { path: "/v1/api/login" } }];
      const steps = [mounted(isApp, "/v1", mounted(isApp, "/api", ...limited("/login", isApp)))];
      const app = await web.start({ limits: [{ rules }], steps });
      assert.ok((await reached(app, "login", targetsOf("/v1/api/login"))) >= 2);
    });

    it(`no spelling evades a rule for a route with a parameter in ${kind}`, async (web) => {
      const rules = [{ name: "key", policy, match: { path: "/api/api-keys/:id" } }];
      const app = await web.start({ limits: [{ rules }], steps: [mounted(isApp, "/api", ...limited("/api-keys/:id", isApp))] });
      const targets = [...targetsOf("/api/api-keys/7"), "/api/api-keys/'#", "/api/api-keys/O'Brien", "/api/api-keys/'\xa0"];
      // Some routers take these for a key that is empty, or that contains the `#`.
      targets.push("/api/api-keys/", "/api/api-keys//", "/api/api-keys#/", "/api/api-keys/#", "/api/api-keys/#/");
      assert.ok((await reached(app, "key", targets)) >= 4);
    });

    it(`a rewritten path counts under the rules for both the rewritten and the original path, in ${kind}`, async (web) => {
      const rules = ["/api/login", "/en/api/login", "/x/api/login", "/login"].map((path) => ({ name: path, policy, match: { path } }));
      const steps: Step[] = [
        { rewrite: "/en", to: "" },
        { router: "/api", app: isApp, steps: [{ limit: 0 }, route("/login")] },
      ];
      const app = await web.start({ limits: [{ rules }], steps });
      for (let i = 0; i < 2; i++) assert.equal(await reached(app, "/api/login", ["/en/api/login", "/api/login"]), 2);
      assert.doesNotMatch((await app.get("/en/api/login")).lines("ratelimit")[0] ?? "", /"\/x|"\/login/);
      assert.doesNotMatch((await app.get("/api/login")).lines("ratelimit")[0] ?? "", /"\/x|"\/login|"\/en/);
    });
  }

  for (const place of ["the app", "the router"]) {
    it(`no spelling evades a rule under a mount path with a parameter, limited in ${place}`, async (web) => {
      const rules = [{ name: "reset", policy, match: { path: "/users/:id/reset" } }];
      const inRouter = mounted(false, "/users/:id", { route: "/reset", limits: [0] });
      const steps = place === "the app" ? [{ limit: 0 }, mounted(false, "/users/:id", route("/reset"))] : [inRouter];
      const app = await web.start({ limits: [{ rules }], steps });
      const ids = ["42", "42'", "42''", "42'''", "O'Brien", "a{b}", "'", "42'/1"];
      // With less effort, each id still meets each third target, and each target three ids or two.
      const step = effort < 1 ? 3 : 1;
      const targets = ids.flatMap((id, i) => targetsOf(`/users/${id}/reset`).filter((_, j) => (i + j) % step === 0));
      assert.ok((await reached(app, "reset", targets)) >= 4);
    });
  }
}
