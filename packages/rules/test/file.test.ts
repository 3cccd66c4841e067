import { execFile, execFileSync } from "node:child_process";
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fileRules, type LiveRules, RulesError } from "../src/index.js";
import { limited, soon, User } from "./harness.js";

let folder: string;
let file: string;
const open: LiveRules[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "floodgate-rules-"));
  file = join(folder, "limits.yaml");
});
afterEach(async () => {
  for (const rules of open.splice(0)) await rules.close();
  rmSync(folder, { recursive: true });
});

async function follow(path = file): Promise<{ rules: LiveRules; user: User }> {
  const rules = await fileRules(path, { pollMs: 5 });
  open.push(rules);
  const user = new User();
  rules.subscribe(user);
  return { rules, user };
}

const becomes = (rules: LiveRules, limit: number) => expect.poll(() => rules.current.rules[0]?.limit, soon).toBe(limit);

/** As long ago as makes a file settled: only what its file system says of it shows a change then. */
function age(path = file): void {
  const longAgo = new Date(Date.now() - 60_000);
  utimesSync(path, longAgo, longAgo);
}

describe("a file of rules that has changed", () => {
  it("is read anew where it was written in place", async () => {
    writeFileSync(file, limited(1));
    age();
    const { rules, user } = await follow();
    writeFileSync(file, limited(2));
    await becomes(rules, 2);
    writeFileSync(file, limited(30));
    await becomes(rules, 30);
    expect(user.told).toEqual(["reloaded", "reloaded"]);
  });

  it("is put in force once it has been written to its end, not by halves", async () => {
    const rule = (name: string): string => `  - { name: ${name}, limit: 1, window: 1m }\n`;
    writeFileSync(file, `rules:\n${rule("one")}`);
    age();
    const { rules, user } = await follow();
    const seen: number[] = [];
    user.judge = (next) => seen.push(next.rules.length);
    const written = openSync(file, "w");
    writeSync(written, "rules:\n");
    for (const name of ["one", "two", "three"]) {
      writeSync(written, rule(name));
      await new Promise((resolve) => setImmediate(resolve));
    }
    closeSync(written);
    await expect.poll(() => rules.current.rules.length, soon).toBe(3);
    expect(seen).toEqual([3]);
  });

  it("is read anew where it was replaced, as editors do, also by one of the same size and date", async () => {
    writeFileSync(file, limited(1));
    age();
    const { rules } = await follow();
    const next = join(folder, ".limits.yaml.swp");
    writeFileSync(next, limited(2));
    age(next);
    renameSync(next, file);
    await becomes(rules, 2);
  });

  it("is read anew where it was written twice within one tick of the clock", async () => {
    writeFileSync(file, limited(1));
    const { rules } = await follow();
    for (let limit = 2; limit < 10; limit++) writeFileSync(file, limited(limit));
    await becomes(rules, 9);
  });

  it("is read anew where a link on the way to it was turned, as a config map's is", async () => {
    for (const version of ["..1", "..2"]) {
      mkdirSync(join(folder, version));
      writeFileSync(join(folder, version, "limits.yaml"), limited(version.slice(2)));
      age(join(folder, version, "limits.yaml"));
    }
    symlinkSync("..1", join(folder, "..data"));
    symlinkSync(join("..data", "limits.yaml"), file);
    const { rules, user } = await follow();
    symlinkSync("..2", join(folder, "..data_tmp"));
    renameSync(join(folder, "..data_tmp"), join(folder, "..data"));
    rmSync(join(folder, "..1"), { recursive: true });
    await becomes(rules, 2);
    expect(user.told).toEqual(["reloaded"]);
  });

  it("may be gone for a while: that is told once, and the last version stays", async () => {
    writeFileSync(file, limited(1));
    const { rules, user } = await follow();
    unlinkSync(file);
    expect(await user.hears(1)).toEqual([expect.stringMatching(/limits\.yaml: the rules cannot be read: ENOENT: no such file/)]);
    expect(rules.current.rules[0]?.limit).toBe(1);
    writeFileSync(file, limited(2));
    await becomes(rules, 2);
    expect(user.told.slice(1)).toEqual(["reloaded"]);
  });

  it("may be followed by things that are no file: each is told, and so is its return, as it was", async () => {
    writeFileSync(file, limited(1));
    const { rules, user } = await follow();
    const steps: [() => void, RegExp][] = [
      [() => execFileSync("mkfifo", [file]), /it is no regular file/],
      [() => mkdirSync(file), /it is a directory/],
      [() => symlinkSync(file, file), /ELOOP/],
    ];
    for (const [i, [put, message]] of steps.entries()) {
      rmSync(file, { recursive: true });
      await user.hears(2 * i + 1);
      put();
      expect((await user.hears(2 * i + 2)).slice(2 * i)).toEqual([expect.stringMatching(/ENOENT/), expect.stringMatching(message)]);
    }
    rmSync(file);
    await user.hears(7);
    writeFileSync(file, limited(1));
    await user.hears(8);
    expect(user.events.at(-1)).toEqual({ type: "rules-reloaded", source: file, version: rules.version });
  });

  it("may be read half-written: the half is refused, the whole is taken", async () => {
    writeFileSync(file, limited(1));
    const { rules, user } = await follow();
    const text = limited(2);
    const descriptor = openSync(file, "w");
    await user.hears(1);
    writeSync(descriptor, text.slice(0, 20));
    await user.hears(2);
    writeSync(descriptor, text.slice(20));
    await becomes(rules, 2);
    expect(user.told).toEqual([
      expect.stringContaining("1:1: The file must be a map, but there was nothing."),
      expect.stringMatching(/:2:\d+: /),
      "reloaded",
    ]);
  });

  it("may be bad: the lines are told once, and the next good one is taken", async () => {
    writeFileSync(file, limited(1));
    const { rules, user } = await follow();
    writeFileSync(file, "rules: [{ name: posts, limt: 5, window: 1m }]\n");
    const [refusal] = await user.hears(1);
    expect(refusal).toContain(`${file}:1:24: rules[0] has no option \`limt\`. Did you mean \`limit\`?`);
    writeFileSync(file, limited(2));
    await becomes(rules, 2);
    expect(user.told).toEqual([refusal, "reloaded"]);
  });

  it("changes nothing once the source is closed", async () => {
    writeFileSync(file, limited(1));
    const closed = await follow();
    const other = await follow();
    await closed.rules.close();
    await closed.rules.close();
    writeFileSync(file, limited(2));
    await becomes(other.rules, 2);
    expect(closed.rules.current.rules[0]?.limit).toBe(1);
    expect(closed.user.told).toEqual([]);
  });
});

describe("a file from another machine's clock, dated in the future", () => {
  const tomorrow = (): void => {
    const date = new Date(Date.now() + 86_400_000);
    utimesSync(file, date, date);
  };

  it("is followed as any other", async () => {
    writeFileSync(file, limited(1));
    tomorrow();
    const { rules, user } = await follow();
    for (const limit of [2, 3]) {
      writeFileSync(file, limited(limit));
      tomorrow();
      await becomes(rules, limit);
    }
    expect(user.told).toEqual(["reloaded", "reloaded"]);
  });
});

describe("a process that waits for its first file and nothing else", () => {
  const touch = `
    const [, file, aheadMs] = process.argv;
    const date = new Date(Date.now() + Number(aheadMs));
    process.getBuiltinModule("node:fs").utimesSync(file, date, date);`;
  const modules = [
    { module: "commonjs", code: `require("@floodgate/rules").fileRules(file).then(({ current }) => console.log(current.rules[0].limit));` },
    {
      module: "module",
      code: `import { fileRules } from "@floodgate/rules"; console.log((await fileRules(file)).current.rules[0].limit);`,
    },
  ];
  const dates = [
    { dated: "just now", aheadMs: 0 },
    { dated: "in the future", aheadMs: 86_400_000 },
  ];
  const kinds = modules.flatMap((one) => dates.map((date) => ({ ...one, ...date })));

  it.each(kinds)("gets it, dated $dated, and then ends: $module", async ({ module, code, aheadMs }) => {
    writeFileSync(file, limited(7));
    const args = [`--input-type=${module}`, "-e", `${touch}\n${code}`, file, `${aheadMs}`];
    // Its exit code is 0, or this rejects.
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: __dirname });
    expect(stdout).toBe("7\n");
  });
});

describe("a first file", () => {
  it.each<[string, () => void, RegExp]>([
    ["there", () => undefined, /ENOENT: no such file/],
    ["a file", () => mkdirSync(file), /it is a directory/],
    ["a regular file", () => execFileSync("mkfifo", [file]), /it is no regular file/],
    ["of a size that can be meant", () => writeFileSync(file, Buffer.alloc(2 ** 20 + 1, "#")), /it has 1048577 bytes, more than/],
    ["no link that leads nowhere", () => symlinkSync(join(folder, "nowhere"), file), /ENOENT/],
    ["no link to itself", () => symlinkSync(file, file), /ELOOP/],
  ])("must be %s", async (_, make, message) => {
    make();
    await expect(fileRules(file)).rejects.toMatchObject({ code: "FLOODGATE_RULES_UNAVAILABLE", message: expect.stringMatching(message) });
  });

  it.each([
    [undefined, undefined, 'fileRules: `path` must be a text, the path of a file, but was undefined. Write fileRules("limits.yaml").'],
    [null, undefined, "but was null."],
    ["", undefined, "but was an empty text."],
    ["limits.yaml", null, "fileRules takes an object of options, but was given null. Write fileRules(..., { pollMs: 500 })."],
    ["limits.yaml", { pollms: 5 }, "fileRules has no option `pollms`. Did you mean `pollMs`?"],
    ["limits.yaml", { pollMs: 0 }, "fileRules: `pollMs` must be a whole number of at least 1, but was 0. Write pollMs: 500."],
  ])("needs a path and sound options: %o, %o", async (path, options, message) => {
    await expect(fileRules(path as never, options as never)).rejects.toThrow(message);
  });

  it("must be good", async () => {
    writeFileSync(file, limited(-1));
    const error = await fileRules(file).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(RulesError);
    expect(String(error)).toContain(`${file}:2:27: `);
  });
});
