import { type RedisServer, startRedis } from "@floodgate/test-servers";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, test, vi } from "vitest";
import { json } from "../src/output/terminal.js";
import { floodgate } from "./command.js";
import { tempFolder } from "./files.js";

const anyText = fc.string({ unit: "binary" });
const obeyed = /[^\n\P{C}]/u;

test("JSON is exact, and nothing in it is a terminal's to obey", () => {
  fc.assert(
    fc.property(anyText, fc.dictionary(anyText, anyText), (text, map) => {
      const written = json([text, map]);
      expect(JSON.parse(written)).toEqual([text, map]);
      expect(written).not.toMatch(obeyed);
    }),
  );
});

// Clears the line in two ways, and writes it anew, from right to left too.
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
const asked = ["--key", `user=${evil}`, "--plan"];

describe("a terminal is shown, and does not obey", () => {
  it.each([
    ["a file's name", ["check", file]],
    ["the name of a file that is none", ["check", path(evil)]],
    ["the name of a file that is pushed", ["push", file]],
    ["where it is pushed", ["push", file, "--rules-key", `${evil} 2`]],
    ["problems", ["check", file, "--keys", evil]],
    ["a request", ["check", file, "--request", evilPath, "--key", "user=42", "--plan", evil]],
    ["a request that nobody counts", ["check", file, "--request", evilPath]],
    ["a request's key", ["check", file, "--request", "/", ...asked, evil]],
    ["a request's plan", ["check", file, "--request", "/", ...asked, `${evil} 2`]],
    ["what is no address", ["check", file, "--request", "/", "--ip", evil]],
    ["what is no option", ["check", file, `--${evil}`]],
    ["what is no command", [evil]],
    ["rules in Redis, and their version", ["pull", ...inRedis]],
    ["where there are no rules", ["pull", "--rules-key", `${evil} 3`]],
    ["a key", ["status", "--rule", "a", ...key, ...inRedis]],
    ["a key, in JSON", ["status", "--rule", "a", ...key, ...inRedis, "--json"]],
    ["a key that is reset", ["reset", "--rule", "a", ...key, "--file", file]],
    ["a key that is reset, in JSON", ["reset", "--rule", "a", ...key, "--file", file, "--json"]],
    ["a request's key, in JSON", ["check", file, "--request", "/", ...asked, evil, "--json"]],
    ["a key's plan", ["status", "--rule", "a", ...key, "--plan", `${evil} 2`, "--file", file]],
    ["a rule that is none", ["status", "--rule", evil, ...key, ...inRedis]],
    ["the stack of an error", ["--debug", "pull", "--rules-key", `${evil} 3`]],
  ])("%s", async (_, args) => {
    const { out, err } = await floodgate(args, "", true);
    expect(out + err).toMatch(/\ufffd|\\u/);
    expect(out + err).not.toMatch(obeyed);
  });

  it("what a file gets as it is", async () => {
    expect((await floodgate(["pull", ...inRedis])).out).toBe(pulled);
  });
});
