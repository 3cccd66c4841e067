import { createHash, randomBytes } from "node:crypto";
import { Agent, type OutgoingHttpHeaders } from "node:http";
import type { TcpProxy, WebServer } from "@floodgate/test-servers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { allRuns } from "../../../../test/runs.js";
import { dear, exhaustedClient, numbersOfLines, raw, sizes } from "./attacks.js";
import { Client } from "./client.js";
import { type GatewayUnderTest, limit, longDeadlineMs, pageDeadlineMs, Stage } from "./stage.js";

/** Headers by which gateways and apps tell each other what a client is or wants. A client that sends them must gain nothing. */
function forged(i: number): Record<string, string> {
  const [address, path] = [`203.0.113.${i}`, `/free/${i}`];
  return {
    Forwarded: `for=${address}`,
    "X-Forwarded-For": address,
    "X-Real-IP": address,
    "X-Original-For": address,
    "X-Original-URI": path,
    "X-Original-URL": path,
    "X-Forwarded-Uri": path,
    "X-Rewrite-URL": path,
    "X-Original-Method": "OPTIONS",
    "X-Forwarded-Method": "OPTIONS",
    "X-HTTP-Method": "OPTIONS",
    "X-HTTP-Method-Override": "OPTIONS",
    "X-Method-Override": "OPTIONS",
    "X-Forwarded-Host": `host-${i}.example`,
    "X-Floodgate-Status": "200",
    "X-User": `user-${i}`,
  };
}

/** Those that frameworks believe, as CGI and WSGI name them. */
const believed = /^(FORWARDED|X_FORWARDED_(FOR|HOST)|X_REAL_IP|X_USER|X_ORIGINAL_URL|X_REWRITE_URL|X_HTTP_METHOD.*|X_METHOD_OVERRIDE)$/;

/** Asks a gateway to drop the headers in which it says what is asked. */
const hopByHop = Object.keys(forged(0)).join(", ");

/** What each gateway that asks the decision server must do, with the config of its page. */
export function describeGateway(gateway: GatewayUnderTest, version: string): void {
  describe(`${gateway.name} ${version}`, () => {
    const stage = new Stage();
    const { app } = stage;
    let network: TcpProxy;
    let server: WebServer;
    let direct: WebServer;

    beforeAll(async () => {
      await stage.start();
      const deciding = await stage.decisionServer();
      network = deciding.network;
      direct = await stage.gateway(gateway, deciding.port, "open", longDeadlineMs);
      server = await stage.gateway(gateway, network.port, "open", longDeadlineMs);
    });
    afterAll(() => stage.stop());
    beforeEach(() => void app.take());

    const client = (): Client => new Client(server.port);

    describe("limits", () => {
      it("are exact for each client address under concurrency", async () => {
        const [one, other] = [client(), client()];
        const [ofOne, ofOther] = await Promise.all([one.burst(20, (i) => `/ip/${i}`), other.burst(4, (i) => `/ip/${i}`)]);
        expect(ofOne).toEqual({ 200: limit, 429: 15 });
        expect(ofOther).toEqual({ 200: 4 });
        expect(app.take()).toHaveLength(limit + 4);
      });

      it("are exact for each value of a header", async () => {
        const key = randomBytes(8).toString("hex");
        const counts = await client().burst(
          20,
          () => "/key/1",
          (i) => ({ headers: { "X-Api-Key": `${key}-${i % 2}` } }),
        );
        expect(counts).toEqual({ 200: 2 * limit, 429: 10 });
      });

      it("hold for a path however it is written", async () => {
        const writings = [
          "/paths/1/edit",
          "/paths/2/edit?x=/free",
          "/p%61ths/3/edit",
          "/PATHS/4/Edit",
          "/paths/5/edit/",
          "/paths/a%2Fb/%65dit",
        ];
        const counts = await client().burst(12, (i) => writings[i % writings.length] as string);
        expect(counts).toEqual({ 200: limit, 429: 7 });
      });

      it("hold for a method, and no other one", async () => {
        const one = client();
        const body = Buffer.from("GET / HTTP/1.1\r\n\r\n");
        const others = await one.burst(
          10,
          () => "/posts",
          (i) => ({
            method: ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"][i % 5] as string,
            ...(i % 5 === 0 ? {} : { body: Buffer.from("x") }),
          }),
        );
        expect(others).toEqual({ 200: 10 });
        const posts = await one.burst(
          10,
          () => "/posts",
          (i) => ({ method: "POST", body, isChunked: i % 2 === 0 }),
        );
        expect(posts).toEqual({ 200: limit, 429: 5 });
      });

      it("of GET count HEAD too", async () => {
        const one = client();
        const counts = await one.burst(
          12,
          () => "/reads",
          (i) => ({ method: i % 2 === 0 ? "GET" : "HEAD" }),
        );
        expect(counts).toEqual({ 200: limit, 429: 7 });
        const { status, headers, body } = await one.send("/reads", { method: "HEAD" });
        expect([status, headers["retry-after"], body]).toEqual([429, expect.stringMatching(/^\d+$/), ""]);
      });
    });

    describe("a client that forges headers", () => {
      it("is counted by its own address, path and method", async () => {
        expect(
          await client().burst(
            12,
            (i) => `/ip/${i}`,
            (i) => ({ headers: forged(i) }),
          ),
        ).toEqual({ 200: limit, 429: 7 });
      });

      it("sends the app none that frameworks believe, in no writing", async () => {
        const writings = [(name: string) => name, (name: string) => name.replaceAll("-", "_"), (name: string) => name.replaceAll("-", ".")];
        for (const write of writings) {
          const headers = Object.fromEntries(Object.entries(forged(7)).map(([name, value]) => [write(name), value]));
          await client().send("/free", { headers });
        }
        const values = new Set(Object.values(forged(7)));
        const received = app.take();
        expect(received).toHaveLength(writings.length);
        for (const { lines } of received) {
          const arrived = Object.entries(lines).filter(([name]) => believed.test(name));
          expect(arrived.filter(([, sent]) => sent.length > 1 || values.has(sent[0] as string) || sent[0]?.includes("203.0.113"))).toEqual(
            [],
          );
        }
      });

      it("sends the app no other key than it is counted by", async () => {
        const one = client();
        const disguises: ((i: number) => OutgoingHttpHeaders)[] = [
          () => ({ "X-Api-Key": "own" }),
          (i) => ({ "X-Api-Key": [`${i}`, "own"] }),
          (i) => ({ "X-Api-Key": ["own", `${i}`] }),
          (i) => ({ "X-Api-Key": `${i}`, X_Api_Key: "own" }),
          (i) => ({ X_Api_Key: "own", "X-Api-Key": `${i}` }),
          (i) => ({ "X-Api-Key": `${i}`, "X.Api.Key": "own" }),
          () => ({ X_Api_Key: "own" }),
          () => ({ "X-Api-Key": "own", Connection: "close, X-Api-Key" }),
          (i) => ({ "X-Api-Key": `${i}`, Connection: "close, X-Api-Key" }),
          (i) => ({ "X-Api-Key": `${i}`, Connection: ["close", "x-foo,,\tX-API-KEY"] }),
        ];
        for (let i = 0; i < (allRuns ? 20 : 6) * disguises.length; i++) {
          await one.send("/key/1", { headers: disguises[i % disguises.length]?.(i) as OutgoingHttpHeaders });
        }
        const arrived: Record<string, number> = {};
        for (const { lines } of app.take()) {
          const keys = (lines["X_API_KEY"] ?? ["by address"]).join(" and ");
          arrived[keys] = (arrived[keys] ?? 0) + 1;
        }
        expect(Object.entries(arrived).filter(([keys, count]) => count > limit || keys.includes(" and "))).toEqual([]);
      });

      it("whose header is named none is counted", async () => {
        const counts = await client().attack([raw("/", "None: a")], 12);
        expect(counts).toEqual({ 200: limit, 429: 7 });
      });

      it("is denied if the decision server refuses to decide, although the gateway fails open", async () => {
        const one = client();
        for (const headers of [{}, { "X-Api-Key": "" }]) expect((await one.send("/demand/1", { headers })).status).toBe(403);
        expect(app.take()).toEqual([]);
      });

      it("is no other user", async () => {
        expect(
          await client().burst(
            12,
            () => "/user/1",
            (i) => ({ headers: { "X-User": `user-${i}` } }),
          ),
        ).toEqual({ 200: limit, 429: 7 });
      });

      it("cannot make the gateway drop its own", async () => {
        const counts = await client().burst(
          12,
          (i) => `/ip/${i}`,
          (i) => ({ headers: { ...forged(i), Connection: `close, ${hopByHop}` } }),
        );
        expect(counts).toEqual({ 200: limit, 429: 7 });
      });
    });

    describe("an exhausted client", () => {
      const exhausted = async (): Promise<Client> => {
        const one = await exhaustedClient(direct.port);
        app.take();
        return one;
      };
      afterEach(async () => {
        expect(app.take()).toEqual([]);
        expect(await (await exhausted()).attack([raw("/")])).toEqual({ 429: 1 });
      });

      it.each(["X-Api-Key: a", "None: a"])("passes with no number of header lines: %s", async (line) => {
        await (await exhausted()).attack(numbersOfLines.map((count) => raw("/", ...Array.from({ length: count }, () => line))));
      });

      it("passes with no size of query and key", async () => {
        await (await exhausted()).attack(sizes.map((bytes) => dear.queryAndKey(bytes)));
      });

      it("passes nothing by leaving early", async () => {
        const one = await exhausted();
        for (let i = 0; i < (allRuns ? 100 : 20); i++) await one.leave(raw("/"), i % 5);
      });
    });

    describe("responses", () => {
      it("of the app say what is left", async () => {
        const { status, headers, body } = await client().send("/ip/a%2Fb?c=d%20e");
        expect([status, headers["x-app"], JSON.parse(body).url]).toEqual([200, "yes", "/ip/a%2Fb?c=d%20e"]);
        expect(headers["ratelimit"]).toMatch(/^"by-ip";r=4;t=\d+$/);
        expect(headers["ratelimit-policy"]).toBe('"by-ip";q=5;w=31536000');
      });

      it("to limited clients say when to come back", async () => {
        const one = client();
        for (let i = 0; i < limit; i++) await one.send("/ip/1");
        const { status, headers, body } = await one.send("/ip/1");
        expect(status).toBe(429);
        expect(Number(headers["retry-after"])).toBeGreaterThan(0);
        expect(headers["ratelimit"]).toBe(`"by-ip";r=0;t=${headers["retry-after"]}`);
        expect(headers["ratelimit-policy"]).toBe('"by-ip";q=5;w=31536000');
        expect(headers["content-type"]).toBe("application/problem+json");
        expect(headers["content-length"]).toBe(`${body.length}`);
        expect(headers["x-app"]).toBeUndefined();
        const type = "https://iana.org/assignments/http-problem-types#quota-exceeded";
        const own = { "violated-policies": ["by-ip"], "retry-after": Number(headers["retry-after"]) };
        expect(JSON.parse(body)).toMatchObject({ type, title: "Quota exceeded", status: 429, ...(gateway.passesBody ? own : {}) });
      });

      it.each([403, 404, 429, 500, 503])("of the app with status %i pass", async (status) => {
        const response = await client().send(`/status/${status}`);
        expect([response.status, response.headers["x-app"], JSON.parse(response.body).method]).toEqual([status, "yes", "GET"]);
        expect(response.headers["ratelimit"]).toBeUndefined();
      });
    });

    describe("bodies", () => {
      const body = randomBytes(8_000_000);

      it("that are large reach the app whole", async () => {
        const { status } = await client().send("/ip/1", { method: "PUT", body });
        expect(status).toBe(200);
        const sha256 = createHash("sha256").update(body).digest("hex");
        expect(app.take()).toMatchObject([{ method: "PUT", url: "/ip/1", bytes: body.length, sha256 }]);
      });

      it("of limited requests do not reach the app", async () => {
        const one = client();
        await one.burst(limit, () => "/ip/1");
        app.take();
        expect((await one.send("/ip/1", { method: "POST", body: body.subarray(0, 10_000) })).status).toBe(429);
        expect(app.take()).toEqual([]);
      });
    });

    const { connections } = gateway;
    if (connections !== undefined) {
      it("keeps connections to the decision server", async () => {
        const one = client();
        const agent = new Agent({ keepAlive: true, maxSockets: 1 });
        const before = network.accepted;
        for (let i = 0; i < 40; i++) expect((await one.send("/free", { agent })).status).toBe(200);
        agent.destroy();
        expect(network.accepted - before).toBeLessThanOrEqual(connections);
      });
    }

    it("answers 503 if the decision server does, because Redis is down", async () => {
      const deciding = await stage.decisionServer({ redis: "redis://127.0.0.1:1", onStoreError: "deny", timeoutMs: 100 });
      const denying = await stage.gateway(gateway, deciding.port, "open", longDeadlineMs);
      const { status, headers, body } = await new Client(denying.port).send("/ip/1");
      expect([status, headers["content-type"]]).toEqual([503, "application/problem+json"]);
      expect(JSON.parse(body).type).toBe("https://iana.org/assignments/http-problem-types#temporary-reduced-capacity");
      expect(app.take()).toEqual([]);
    });

    const failures: { readonly name: string; fail(): void }[] = [
      {
        name: "is down",
        fail: () => {
          network.refuse();
          network.cut();
        },
      },
      {
        name: "hangs",
        fail: () => {
          network.requests.mode = "drop";
        },
      },
      {
        name: "stops in the middle of an answer",
        fail: () => {
          network.replies.mode = "hold";
        },
      },
    ];

    describe.each(["open", "closed"] as const)("that fails %s", (onFailure) => {
      let failing: WebServer;
      beforeAll(async () => {
        failing = await stage.gateway(gateway, network.port, onFailure, pageDeadlineMs);
      });

      it.each(failures)("answers within the deadline while the decision server $name, and limits again after that", async ({ fail }) => {
        const one = new Client(failing.port);
        fail();
        try {
          const { status, headers } = await one.send("/ip/1", { headers: { "X-User": "bob", X_User: "bob" } });
          if (onFailure === "open") expect([status, headers["x-app"]]).toEqual([200, "yes"]);
          else expect([gateway.closedStatus.includes(status), status, headers["x-app"]]).toEqual([true, status, undefined]);
          expect(headers["ratelimit"]).toBeUndefined();
          expect(app.take().map(({ lines }) => lines["X_USER"])).toEqual(onFailure === "open" ? [undefined] : []);
        } finally {
          network.cut();
          network.requests.mode = "pass";
          network.replies.mode = "pass";
          await network.accept();
        }
        let last = 0;
        for (let i = 0; last !== 429 && i < 100; i++) last = (await one.send("/ip/1")).status;
        expect(last).toBe(429);
      });
    });
  });
}
