import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { inspect } from "node:util";
import { consumeAll, type FloodgateEvent, fixedWindow, type Limiter, type Store } from "../../src/index.js";
import { describe, it, type LimitSetup, type RequestView, self, type Web } from "./app.js";

const policy = fixedWindow({ limit: 1, window: "1m" });
const secret = "sk_live_4eC39HqLyjWDarjtT1zdp7dc";
const other = "sk_live_another";
const keySecret = "a secret of the app, 32 characters or more";

const digestOf = (key: string): string => `secret:${createHash("sha256").update(`floodgate:secret-key:${key}`).digest("hex")}`;
const hmacOf = (key: string): string => `secret:${createHmac("sha256", keySecret).update(`floodgate:secret-key:${key}`).digest("hex")}`;

const token = (request: RequestView): string | undefined => request.header("x-token");
const user = (request: RequestView): string | undefined => request.header("x-user");

/** Limits with a secret key: name, header of the secret, options, expected key text. */
const secretive: [string, string, LimitSetup, string][] = [
  ["header:authorization", "authorization", { key: "header:authorization" }, digestOf(secret)],
  ["header:proxy-authorization", "proxy-authorization", { key: "header:proxy-authorization" }, digestOf(secret)],
  ["header:cookie", "cookie", { key: "header:cookie" }, digestOf(secret)],
  ["header:X-API-Key", "x-api-key", { key: "header:X-API-Key" }, digestOf(secret)],
  ["header:api-key", "api-key", { key: "header:api-key" }, digestOf(secret)],
  ["secret:header:x-token", "x-token", { key: "secret:header:x-token" }, digestOf(secret)],
  ["a secret key defined in keys", "x-token", { key: "secret:token", keys: { token } }, digestOf(secret)],
  [
    "an asynchronous secret key defined in keys",
    "x-token",
    { key: "secret:token", keys: { token: async (request) => token(request) } },
    digestOf(secret),
  ],
  ["a tuple", "x-api-key", { key: ["ip", "header:x-api-key", "user"], keys: { user } }, `(${self},${digestOf(secret)},ann)`],
  ["a keySecret", "x-api-key", { key: "header:x-api-key", keySecret }, hmacOf(secret)],
];

/** Secret keys are stored and shown as digests. */
describe("secret keys", () => {
  for (const [kind, header, limit, text] of secretive) {
    it(`${kind}: only the digest is stored, logged and shown`, async (web) => {
      const { seen, texts } = await everything(web, { ...limit, policy }, { [header]: secret, "x-user": "ann" });
      assert.deepEqual([...new Set(texts)], [text]);
      assert.deepEqual(
        seen.filter((one) => one.includes(secret)),
        [],
      );
    });

    it(`${kind}: each secret has its own count`, async (web) => {
      const app = await web.start({ ...limit, policy });
      const statuses = (value: string): Promise<number[]> => app.statuses(2, "/", { [header]: value, "x-user": "ann" });
      assert.deepEqual(await statuses(secret), [200, 429]);
      assert.deepEqual(await statuses(other), [200, 429]);
    });

    it(`${kind}: a client that sends a digest does not reach the count of its secret`, async (web) => {
      const app = await web.start({ ...limit, policy });
      const digest = text === hmacOf(secret) ? hmacOf(secret) : digestOf(secret);
      const statuses = (value: string): Promise<number[]> => app.statuses(2, "/", { [header]: value, "x-user": "ann" });
      assert.deepEqual(await statuses(digest), [200, 429]);
      assert.deepEqual(await statuses(secret), [200, 429]);
    });
  }

  it("a plain key that looks like a digest does not reach a secret's count", async (web) => {
    const app = await web.start({ policy, key: (request) => request.header("x-plain") ?? request.header("x-key") });
    const limiter = (await web.start({ policy, key: "header:x-api-key", name: "other" })).limits[0]?.limiter;
    assert.deepEqual(await app.statuses(2, "/", { "x-plain": digestOf(secret) }), [200, 429]);
    assert.notEqual(app.limits[0]?.limiter.keyText(digestOf(secret)), limiter?.keyText(secret));
  });

  it("limiters accept the secret or its digest", async (web) => {
    const app = await web.start({ policy, key: "header:x-api-key" });
    const limiter = app.limits[0]?.limiter as Limiter;
    for (const key of [secret, digestOf(secret)]) {
      assert.deepEqual(await app.statuses(2, "/", { "x-api-key": secret }), [200, 429]);
      assert.equal((await limiter.peek(key)).remaining, 0);
      await limiter.reset(key);
    }
    const decision = await limiter.consume(secret);
    assert.equal((await app.get("/", { "x-api-key": secret })).status, 429);
    assert.equal(await limiter.refund(secret, decision), 1);
    assert.equal((await app.get("/", { "x-api-key": secret })).status, 200);
    await limiter.reset(secret);
    await consumeAll([{ limiter, key: secret }]);
    assert.equal((await app.get("/", { "x-api-key": secret })).status, 429);
  });

  it("limiters of a tuple accept the secret part or its digest", async (web) => {
    const app = await web.start({ policy, key: ["header:x-api-key", "user"], keys: { user } });
    const limiter = app.limits[0]?.limiter as Limiter;
    for (const part of [secret, digestOf(secret)]) {
      assert.deepEqual(await app.statuses(2, "/", { "x-api-key": secret, "x-user": "ann" }), [200, 429]);
      await limiter.reset([part, "ann"]);
    }
    for (const key of [secret, [secret], [secret, "ann", "b"]]) {
      assert.throws(
        () => limiter.reset(key),
        (error: Error & { code?: string }) => error.code === "FLOODGATE_INVALID_KEY" && !error.message.includes(secret),
      );
    }
  });

  it("exemptions accept the secret or its digest", async (web) => {
    for (const [name, named] of [
      ["key", secret],
      ["digest", digestOf(secret)],
    ] as const) {
      const app = await web.start({ name, policy, key: "header:x-api-key", exempt: { keys: [named] } });
      assert.deepEqual(await app.statuses(2, "/", { "x-api-key": secret }), [200, 200]);
      assert.deepEqual(await app.statuses(2, "/", { "x-api-key": digestOf(secret) }), [200, 429]);
    }
  });

  it("exemptions beside rules apply to secret keys and to secret parts of tuples", async (web) => {
    const rules = [
      { name: "key", policy, key: "header:x-api-key" },
      { name: "pair", policy, key: ["user", "secret:token"] },
      { name: "user", policy, key: "user" },
    ];
    const keys = { user, token };
    const app = await web.start({ rules, keys, exempt: { keys: [secret, ["ann", secret], "ann"] } });
    const headers = { "x-api-key": secret, "x-token": secret, "x-user": "ann" };
    assert.deepEqual(await app.statuses(2, "/", headers), [200, 200]);
    assert.equal((await app.get("/", { ...headers, "x-token": other })).status, 200);
    assert.equal((await app.get("/", { ...headers, "x-token": other })).status, 429);
  });

  it("an invalid secret is an error that does not show the secret", async (web) => {
    const app = await web.start({ policy, key: "secret:token", keys: { token: () => ({ [secret]: secret }) as never } });
    assert.equal((await app.get()).status, 500);
    assert.deepEqual(app.codes, ["FLOODGATE_INVALID_KEY"]);
    assert.ok(!inspect(app.errors).includes(secret));
  });

  it("the digest depends on `keySecret` only: the same in every middleware", async (web) => {
    const key = "header:x-api-key";
    const texts: unknown[] = [];
    for (const secretOfApp of [keySecret, keySecret, `${keySecret}!`, undefined]) {
      const app = await web.start({ policy, key, ...(secretOfApp === undefined ? {} : { keySecret: secretOfApp }) });
      texts.push(app.limits[0]?.limiter.keyText(secret));
      for (const limit of app.limits) limit.close();
    }
    assert.equal(texts[0], hmacOf(secret));
    assert.deepEqual(
      texts.slice(1).map((text) => text === texts[0]),
      [true, false, false],
    );
    assert.equal(texts[3], digestOf(secret));
  });

  for (const key of ["secret:", "secret:ip", "secret:global", "secret:route", "secret:header:", "secret:secret:token", "secret:tokn"]) {
    it(`${key} is refused`, async (web) => {
      await assert.rejects(web.start({ policy, key, keys: { token } }), { code: "FLOODGATE_UNKNOWN_KEY" });
    });
  }

  it("names in keys cannot begin with secret:", async (web) => {
    await assert.rejects(web.start({ policy, keys: { "secret:token": token } }), { code: "FLOODGATE_CONFLICTING_OPTIONS" });
  });

  it("a short `keySecret` is refused by an error that does not show it", async (web) => {
    await assert.rejects(
      web.start({ policy, key: "header:x-api-key", keySecret: "too short a secret" }),
      (error: Error) =>
        /`keySecret` must be a string of at least 32 characters/.test(error.message) && !error.message.includes("too short"),
    );
  });
});

/** Runs a limit. Returns everything it stored, emitted, printed and sent, and the texts of its keys. */
async function everything(
  web: Web,
  limit: LimitSetup,
  headers: Readonly<Record<string, string>>,
): Promise<{ seen: string[]; texts: string[] }> {
  const seen: string[] = [];
  const texts: string[] = [];
  const note = (value: unknown): void => void seen.push(inspect(value, { depth: 10, maxStringLength: null, showHidden: true }));
  const onEvent = (event: FloodgateEvent): void => {
    note(event);
    if ("key" in event && event.key !== undefined) texts.push(event.key);
  };
  const store = recording(web.store, note);
  const said = listenToConsole(note);
  try {
    const usual = { ...limit, store, onEvent };
    const app = await web.start({ ...usual, name: "usual", ban: { after: 1, within: "1m", for: "1h" }, decisionName: "found" });
    for (let i = 0; i < 3; i++) note((await app.get("/", headers)).text);
    const settled = await web.start({ ...usual, name: "settled", settle: () => 3, refundWhen: (status) => status === 500 });
    for (let i = 0; i < 2; i++) note(await settled.raw("/", headers));
    const failing = Object.assign(Object.create(store), {
      consume: () => {
        throw new Error("down");
      },
    });
    const degraded = await web.start({ ...usual, name: "degraded", store: failing });
    for (let i = 0; i < 2; i++) note((await degraded.get("/", headers)).headers);
    note([app.errors, settled.errors, degraded.errors]);
  } finally {
    said();
  }
  return { seen, texts };
}

/** Wraps a store and records its calls. */
function recording(store: Store<"sync">, note: (asked: unknown) => void): Store<"sync"> {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...asked: unknown[]) => {
        note(asked);
        return value.apply(target, asked);
      };
    },
  });
}

/** Records console output until the returned function is called. */
function listenToConsole(note: (said: unknown) => void): () => void {
  const methods = ["log", "info", "warn", "error", "debug"] as const;
  const before = methods.map((method) => console[method]);
  for (const method of methods) console[method] = (...said: unknown[]) => note(said);
  return () => {
    methods.forEach((method, i) => {
      console[method] = before[i] as typeof console.log;
    });
  };
}
