import { statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import pino from "pino";
import { describe, expect, it } from "vitest";
import { tokenCheck } from "../../src/api/tokens.js";
import { few, Log, startServe, temporaryFolder } from "../world.js";
import { apiClient } from "./client.js";

const first = "first-token-0123456789";
const second = "second-token-0123456789";
const ann = { rule: "few", key: "ann" };

function tokenFile(...tokens: string[]): string {
  const path = join(temporaryFolder(), "tokens");
  writeFileSync(path, `${tokens.join("\n")}\n`, { mode: 0o600 });
  return path;
}

describe("With a token file, the API", () => {
  it("answers each token of the file, and nobody else", async () => {
    const { api } = await startServe([few(9)], { presets: [], apiListen: "127.0.0.1:0", apiTokenFile: tokenFile(first, second) });
    for (const token of [first, second]) expect((await (await apiClient(api, token))("/v1/check", ann)).status).toBe(200);
    const post = await apiClient(api);
    for (const authorization of ["", "Bearer", `Bearer ${first}x`, `Basic ${first}`, `Bearer ${first} ${second}`, "Bearer constructor"]) {
      const answer = await post("/v1/check", ann, authorization === "" ? {} : { Authorization: authorization });
      expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([401, 'Bearer realm="floodgate"']);
    }
    expect((await post("/v1/reset", ann)).status).toBe(401);
    const description = (await (await fetch(`${api}/v1/openapi.json`)).json()) as object;
    expect(description).toMatchObject({ security: [{ token: [] }], components: { securitySchemes: { token: { scheme: "bearer" } } } });
  });

  it.each([
    ["a missing file", "/nowhere/tokens", "it does not exist"],
    ["a short token", ["short"], "at least 16"],
    ["a token with spaces", ["a token of several words"], "at least 16"],
  ])("does not start with %s", async (_, tokens, message) => {
    const apiTokenFile = typeof tokens === "string" ? tokens : tokenFile(...tokens);
    await expect(startServe([few(9)], { apiListen: "127.0.0.1:0", apiTokenFile })).rejects.toThrow(message);
  });

  it("takes new tokens without a restart, and keeps the old ones if the new are invalid", () => {
    const path = tokenFile(first);
    const log = new Log();
    let nowMs = 0;
    const isToken = tokenCheck(path, pino({ messageKey: "message" }, log), () => nowMs);
    expect([isToken(first), isToken(second)]).toEqual([true, false]);
    writeFileSync(path, `${second}\n${second}2\n`);
    expect(isToken(second)).toBe(false);
    nowMs += 1000;
    expect([isToken(first), isToken(second)]).toEqual([false, true]);
    writeFileSync(path, "short\n");
    nowMs += 1000;
    expect(isToken(second)).toBe(true);
    nowMs += 1000;
    expect(isToken(second)).toBe(true);
    expect(log.messages).toEqual(["The tokens of the JSON API were read again", expect.stringContaining("The old ones stay in force")]);
  });
});

describe("Without a token, the API", () => {
  it("listens on this machine only, and says so", async () => {
    await expect(startServe([few(9)], { apiListen: "0.0.0.0:0" })).rejects.toThrow("which other machines reach, but the API has no token");
    await expect(startServe([few(9)], { apiListen: ":0" })).rejects.toThrow("--api-token-file");
    const { log } = await startServe([few(9)], { apiListen: "127.0.0.1:0" });
    expect(log.messages).toContainEqual(expect.stringContaining("every process of this machine may use it"));
  });

  it("answers to names of this machine only, so that no web page reaches it by a name of its own", async () => {
    const { api } = await startServe([few(9)], { presets: [], apiListen: "127.0.0.1:0" });
    const { hostname, port } = new URL(api);
    const statusFor = (host: string): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const headers = { Host: host, "Content-Type": "application/json" };
        request({ hostname, port, path: "/v1/check", method: "POST", headers }, (response) => {
          response.resume();
          resolve(response.statusCode);
        })
          .on("error", reject)
          .end(JSON.stringify(ann));
      });
    for (const host of ["localhost", `127.0.0.1:${port}`, "[::1]:80"]) expect(await statusFor(host)).toBe(200);
    for (const host of ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example"]) expect(await statusFor(host)).toBe(403);
  });

  it("on a Unix socket answers whoever may open the socket", async () => {
    const path = join(temporaryFolder(), "api.sock");
    await startServe([few(9)], { presets: [], apiListen: `unix:${path}`, apiSocketMode: "660" });
    expect(statSync(path).mode & 0o777).toBe(0o660);
    const answer = await new Promise((resolve, reject) => {
      const headers = { "Content-Type": "application/json", Host: "floodgate" };
      request({ socketPath: path, path: "/v1/check", method: "POST", headers }, (response) => resolve(json(response)))
        .on("error", reject)
        .end(JSON.stringify(ann));
    });
    expect(answer).toMatchObject({ allowed: true });
  });
});

it("A web page is refused, with a token too", async () => {
  const { api } = await startServe([few(9)], { presets: [], apiListen: "127.0.0.1:0", apiTokenFile: tokenFile(first) });
  const post = await apiClient(api, first);
  for (const header of [{ Origin: "http://evil.example" }, { Origin: "null" }, { "Sec-Fetch-Site": "same-origin" }]) {
    expect(await post("/v1/check", ann, header as Record<string, string>)).toMatchObject({ status: 403, body: { code: "browser" } });
  }
  expect((await post("/v1/status", ann)).body).toMatchObject({ remaining: 9 });
});
