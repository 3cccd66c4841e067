import { type RedisServer, startRedis } from "@floodgate/test-servers";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, test, vi } from "vitest";
import { anyCharacter } from "../../conformance/test/characters.js";
import { json } from "../src/output/terminal.js";
import { floodgate } from "./command.js";
import { tempFolder } from "./files.js";

const anyText = fc.string({ unit: anyCharacter });
const control = /[^\n\P{C}]/u;

test("JSON is exact and contains no control characters", () => {
  fc.assert(
    fc.property(anyText, fc.dictionary(anyText, anyText), (text, map) => {
      const written = json([text, map]);
      expect(JSON.parse(written)).toEqual([text, map]);
      expect(written).not.toMatch(control);
    }),
  );
});

// Clears the line in two ways, and overwrites it, also from right to left.
const evil = "x\u001b[2K\u009b2K\r\u202enot blocked";
const evilPath = "/x\u001b[2K\u009b2K\u202e";
const rules = `rules: [{ name: a, key: user, limit: 1, window: 1m, plans: { ${JSON.stringify(evil)}: { limit: 2 } } }]\n`;

const { write, path } = tempFolder();
const file = write(`limits ${evil}.yaml`, rules);
const pulled = `${rules}# ${evil}\n`;

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
  vi.stubEnv("FLOODGATE_REDIS", `redis://${server.host}:${server.port}`);
  await server.command("HSET", evil, "version", evil, "rules", pulled);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await server.stop();
});

const inRedis = ["--rules-key", evil];
const key = ["--key", evil];
const request = ["--key", `user=${evil}`, "--plan"];

describe("control characters are replaced in", () => {
  it.each([
    ["a file's name", ["check", file]],
    ["the name of a missing file", ["check", path(evil)]],
    ["the name of a file that is pushed", ["push", file]],
    ["the key that is pushed to", ["push", file, "--rules-key", `${evil} 2`]],
    ["problems", ["check", file, "--keys", evil]],
    ["a request", ["check", file, "--request", evilPath, "--key", "user=42", "--plan", evil]],
    ["a request that no rule counts", ["check", file, "--request", evilPath]],
    ["a request's key", ["check", file, "--request", "/", ...request, evil]],
    ["a request's plan", ["check", file, "--request", "/", ...request, `${evil} 2`]],
    ["an invalid address", ["check", file, "--request", "/", "--ip", evil]],
    ["an unknown option", ["check", file, `--${evil}`]],
    ["an unknown command", [evil]],
    ["rules in Redis, and their version", ["pull", ...inRedis]],
    ["a key without rules", ["pull", "--rules-key", `${evil} 3`]],
    ["a key", ["status", "--rule", "a", ...key, ...inRedis]],
    ["a key, in JSON", ["status", "--rule", "a", ...key, ...inRedis, "--json"]],
    ["a key that is reset", ["reset", "--rule", "a", ...key, "--file", file]],
    ["a key that is reset, in JSON", ["reset", "--rule", "a", ...key, "--file", file, "--json"]],
    ["a request's key, in JSON", ["check", file, "--request", "/", ...request, evil, "--json"]],
    ["a key's plan", ["status", "--rule", "a", ...key, "--plan", `${evil} 2`, "--file", file]],
    ["an unknown rule", ["status", "--rule", evil, ...key, ...inRedis]],
    ["the stack of an error", ["--debug", "pull", "--rules-key", `${evil} 3`]],
  ])("%s", async (_, args) => {
    const { out, err } = await floodgate(args, "", true);
    expect(out + err).toMatch(/\ufffd|\\u/);
    expect(out + err).not.toMatch(control);
  });

  it("pulled rules are written to a file unchanged", async () => {
    expect((await floodgate(["pull", ...inRedis])).out).toBe(pulled);
  });
});
