import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { credentials, status } from "@grpc/grpc-js";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { resolveSettings } from "../../src/config/resolve.js";
import { startRls } from "../../src/envoy/server.js";
import { Service } from "../../src/service/service.js";
import { makeCertificate } from "../certificate.js";
import { closeAll, connect, descriptor, encode, start } from "./client.js";

afterEach(closeAll);

const rules = `
  - { name: login, match: { domain: edge, descriptor: { path: /login } }, key: global, policy: { algorithm: fixed-window, limit: 3, window: 365d } }`;
const login = { domain: "edge", descriptors: [descriptor("path=/login")] };
const look = { domain: "edge", descriptors: [{ ...descriptor("path=/login"), hits_addend: { value: 0 } }] };
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");

describe("byte for byte", () => {
  it("reads what Envoy sends, and answers what Envoy reads", async () => {
    const { connect } = await start(rules.replace("365d", "1m"), { headers: false });
    // Domain "edge"; a descriptor with path=/login; 4 hits, which never pass.
    const sent = hex("0a0465646765 1210 0a0e 0a0470617468 12062f6c6f67696e 1804");
    expect(encode({ ...login, hits_addend: 4 })).toEqual(sent);
    const answer = await connect().bytes(sent);
    const head = [
      "0802", // overall_code: OVER_LIMIT
      "1211 0802 120b 0803 1002 1a056c6f67696e 1803", // statuses: OVER_LIMIT, 3 a MINUTE, name login, 3 remaining
      "1a19 0a0d 43616368652d436f6e74726f6c 1208 6e6f2d73746f7265", // Cache-Control: no-store
      "1a28 0a0c 436f6e74656e742d54797065 1218 6170706c69636174696f6e2f70726f626c656d2b6a736f6e", // Content-Type: application/problem+json
    ].map(hex);
    const body =
      '{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota exceeded","status":429,"detail":"The request costs 4, more than the limit of 3 ever allows.","violated-policies":["login"]}';
    const length = Buffer.from([0x2a, (body.length & 0x7f) | 0x80, body.length >> 7]);
    expect(answer.toString("hex")).toBe(Buffer.concat([...head, length, Buffer.from(body)]).toString("hex"));
  });

  it("answers an unmatched descriptor with OK and nothing else", async () => {
    const { connect } = await start(rules);
    const sent = hex("0a0465646765 1208 0a06 0a0161 120162");
    expect((await connect().bytes(sent)).toString("hex")).toBe("080112020801");
  });

  it("skips fields that it does not know, at every level", async () => {
    const { connect } = await start(rules);
    const entry = "0a0470617468 12062f6c6f67696e 980601 ea0f0161";
    const sent = hex(`0a0465646765 1219 0a17 ${entry} 7d00000000 8101 0000000000000000`);
    // The lengths above are those of the fields with what is unknown.
    sent[7] = hex(entry).length + 2;
    sent[9] = hex(entry).length;
    expect((await connect().bytes(sent))[1]).toBe(1);
    const answer = await connect().ask(look);
    expect(answer.statuses[0]?.remaining).toBe(2);
  });
});

describe("a call is refused", () => {
  const entry = { key: "path", value: "/login" };
  it.each([
    ["without a domain", { ...login, domain: "" }, "`domain` is empty. Set it in the filter's configuration."],
    ["without descriptors", { domain: "edge", descriptors: [] }, "`descriptors` is empty."],
    ["with 10,000 descriptors", { domain: "edge", descriptors: Array(10_000).fill(descriptor("path=/login")) }, /has 10000 descriptors/],
    ["with 10,000 entries", { domain: "edge", descriptors: [{ entries: Array(10_000).fill(entry) }] }, /has 10000 entries/],
    [
      "with a limit of Envoy's own",
      { domain: "edge", descriptors: [{ entries: [entry], limit: { requests_per_unit: 1, unit: 1 } }] },
      /`limit` of its own/,
    ],
    ["with negative hits", { domain: "edge", descriptors: [{ entries: [entry], is_negative_hits: true }] }, /`is_negative_hits`/],
  ])("%s, and charges nothing", async (_, sent, details) => {
    const { connect, lines } = await start(rules);
    const envoy = connect();
    for (let i = 0; i < 3; i++) {
      await expect(envoy.ask(sent)).rejects.toMatchObject({ code: status.INVALID_ARGUMENT, details: expect.stringMatching(details) });
    }
    expect((await envoy.ask(look)).statuses[0]?.remaining).toBe(3);
    expect(lines.filter((line) => line.includes("refused a call"))).toHaveLength(1);
  });

  it("that is cut off, or no message at all", async () => {
    const { connect } = await start(rules);
    const envoy = connect();
    const whole = encode(login);
    for (const bytes of [whole.subarray(0, -1), hex("ff"), hex("0aff"), hex("12ffffffff0f"), hex("0b"), Buffer.alloc(1000, 0x80)]) {
      await expect(envoy.bytes(Buffer.from(bytes))).rejects.toMatchObject({ code: status.INTERNAL });
    }
    expect((await envoy.ask(login)).code).toBe("OK");
  });

  it("of more than a megabyte; a long value is counted like a short one", async () => {
    const { connect } = await start(
      `\n  - { name: any, match: { domain: edge }, key: "descriptor:user", policy: { algorithm: fixed-window, limit: 1, window: 365d } }`,
    );
    const envoy = connect();
    const ask = (length: number) => envoy.ask({ domain: "edge", descriptors: [descriptor(`user=${"x".repeat(length)}`)] });
    await expect(ask(2 ** 20)).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED });
    expect([(await ask(1_000_000)).code, (await ask(1_000_000)).code, (await ask(999_999)).code]).toEqual(["OK", "OVER_LIMIT", "OK"]);
  });

  it("of a peer that is not trusted", async () => {
    const { connect, lines } = await start(rules, { trustedPeers: ["10.0.0.0/8"] });
    await expect(connect().ask(login)).rejects.toMatchObject({
      code: status.PERMISSION_DENIED,
      details: /^its peer 127\.0\.0\.1:\d+ is not in `trustedPeers`\.$/,
    });
    expect(lines.join("")).toContain("is not in `trustedPeers`");
  });

  it("whose deadline is over, and charges nothing", async () => {
    const { address, connect } = await start(rules);
    const message = encode(login);
    const session = connectHttp2(`http://${address}`);
    const code = await new Promise((resolve, reject) => {
      const stream = session.request({
        ":method": "POST",
        ":path": "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
        "content-type": "application/grpc",
        te: "trailers",
        "grpc-timeout": "1n",
      });
      for (const event of ["response", "trailers"]) {
        stream.on(event, (headers) => headers["grpc-status"] !== undefined && resolve(Number(headers["grpc-status"])));
      }
      stream.on("error", reject).resume();
      stream.end(Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]));
    });
    session.destroy();
    expect(code).toBe(status.DEADLINE_EXCEEDED);
    expect((await connect().ask(look)).statuses[0]?.remaining).toBe(3);
  });
});

describe("entries that are there twice", () => {
  it("are one key", async () => {
    const { connect } = await start(
      `\n  - { name: any, match: { domain: edge }, key: "descriptor:user", policy: { algorithm: fixed-window, limit: 1, window: 365d } }`,
    );
    const envoy = connect();
    const ask = async (...users: string[]) =>
      (await envoy.ask({ domain: "edge", descriptors: [descriptor(...users.map((user) => `user=${user}`))] })).code;
    expect([await ask("a", "b"), await ask("a", "b"), await ask("a"), await ask("b"), await ask("")]).toEqual([
      "OK",
      "OVER_LIMIT",
      "OK",
      "OK",
      "OK",
    ]);
    expect(await ask("")).toBe("OVER_LIMIT");
  });
});

describe("health", () => {
  it("is serving, for the server and the service, and for no other", async () => {
    const { connect } = await start(rules);
    const envoy = connect();
    expect([await envoy.health(), await envoy.health("envoy.service.ratelimit.v3.RateLimitService")]).toEqual([1, 1]);
    await expect(envoy.health("other")).rejects.toMatchObject({ code: status.NOT_FOUND });
  });

  it("is not serving while the service drains, which still answers; then it closes after the calls in flight", async () => {
    const service = await serviceOf(rules);
    let finish = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      finish = resolve;
    });
    let asked = (): void => undefined;
    const isAsked = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const decide = service.limit.decideDescriptors.bind(service.limit);
    vi.spyOn(service.limit, "decideDescriptors").mockImplementation((requests) => {
      asked();
      return held.then(() => decide(requests));
    });
    const part = await startRls(service);
    const envoy = connect(part?.address as string);
    expect(await envoy.health()).toBe(1);
    service.draining = true;
    expect(await envoy.health()).toBe(2);
    const answer = envoy.ask(login);
    await isAsked;
    const closed = part?.close();
    finish();
    expect((await answer).code).toBe("OK");
    await closed;
    await expect(connect(part?.address as string).ask(login)).rejects.toMatchObject({ code: status.UNAVAILABLE });
    await service.close();
  });
});

async function serviceOf(text: string): Promise<Service> {
  const folder = mkdtempSync(join(tmpdir(), "floodgate-rls-"));
  try {
    writeFileSync(join(folder, "limits.yaml"), `rules:${text}`);
    return await Service.start(
      resolveSettings("serve", { code: { rules: join(folder, "limits.yaml"), rls: "127.0.0.1:0", admin: false } }).settings,
      {
        write: () => undefined,
      },
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe("addresses", () => {
  it("may be Unix sockets, whose peers are trusted if the word unix says so", async () => {
    const folder = mkdtempSync(join(tmpdir(), "floodgate-rls-"));
    const { address, connect } = await start(rules, { rls: `unix:${folder}/rls.sock`, trustedPeers: ["unix"] });
    expect(address).toBe(`unix:${folder}/rls.sock`);
    expect((await connect().ask(login)).code).toBe("OK");
    rmSync(folder, { recursive: true });
  });

  it("that are taken are an error", async () => {
    const { address } = await start(rules);
    await expect(start(rules, { rls: address })).rejects.toMatchObject({
      code: "FLOODGATE_CANNOT_LISTEN",
      message: expect.stringContaining(address),
    });
  });
});

describe("TLS", () => {
  let folder: string;
  const file = (name: string): string => join(folder, name);
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "floodgate-tls-"));
    for (const name of ["server", "client", "other"]) {
      const { certificate, key } = await makeCertificate(name);
      writeFileSync(file(`${name}.crt`), certificate);
      writeFileSync(file(`${name}.key`), key);
    }
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it("shows the certificate, and asks clients for theirs; then these are trusted wherever they are", async () => {
    const { address } = await start(rules, {
      rlsCertFile: file("server.crt"),
      rlsKeyFile: file("server.key"),
      rlsClientCaFile: file("client.crt"),
      trustedPeers: ["10.0.0.0/8"],
    });
    const server = readFileSync(file("server.crt"));
    const as = (name: string) => credentials.createSsl(server, readFileSync(file(`${name}.key`)), readFileSync(file(`${name}.crt`)));
    expect((await connect(address, { credentials: as("client") }).ask(login)).code).toBe("OK");
    for (const wrong of [as("other"), credentials.createSsl(server), credentials.createInsecure()]) {
      await expect(connect(address, { credentials: wrong }).ask(login)).rejects.toMatchObject({ code: status.UNAVAILABLE });
    }
  });

  it.each([
    ["a file that is missing", { rlsCertFile: "missing.crt" }, /`rlsCertFile`: .*missing\.crt cannot be used: it does not exist\./],
    ["a key of another certificate", { rlsKeyFile: "other.key" }, /`rlsKeyFile`: .*other\.key cannot be used: /],
    ["a file that is no certificate", { rlsClientCaFile: "client.key" }, /`rlsClientCaFile`: .*client\.key cannot be used: /],
  ])("refuses %s", async (_, wrong, message) => {
    const given = Object.fromEntries(
      Object.entries({ rlsCertFile: "server.crt", rlsKeyFile: "server.key", ...wrong }).map(([name, path]) => [name, file(path)]),
    );
    await expect(start(rules, given)).rejects.toThrow(message);
  });
});
