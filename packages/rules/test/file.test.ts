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

/** Makes a file so old that its metadata is a reliable revision. */
function age(path = file): void {
  const longAgo = new Date(Date.now() - 60_000);
  utimesSync(path, longAgo, longAgo);
}

describe("a changed rules file", () => {
  it("is reloaded if it was written in place", async () => {
    writeFileSync(file, limited(1));
    age();
    const { rules, user } = await follow();
    writeFileSync(file, limited(2));
    await becomes(rules, 2);
    writeFileSync(file, limited(30));
    await becomes(rules, 30);
    expect(user.reports).toEqual(["reloaded", "reloaded"]);
  });

  it("is loaded once it is completely written", async () => {
    const rule = (name: string): string => `  - { name: ${name}, limit: 1, window: 1m }\n`;
    writeFileSync(file, `rules:\n${rule("one")}`);
    age();
    const { rules, user } = await follow();
    const seen: number[] = [];
    user.check = (next) => seen.push(next.rules.length);
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

  it("is reloaded if it was replaced by a file of the same size and date, as editors do", async () => {
    writeFileSync(file, limited(1));
    age();
    const { rules } = await follow();
    const next = join(folder, ".limits.yaml.swp");
    writeFileSync(next, limited(2));
    age(next);
    renameSync(next, file);
    await becomes(rules, 2);
  });

  it("is reloaded if it was written several times within one tick of the clock", async () => {
    writeFileSync(file, limited(1));
    const { rules } = await follow();
    for (let limit = 2; limit < 10; limit++) writeFileSync(file, limited(limit));
    await becomes(rules, 9);
  });

  it("is reloaded if a symlink in its path changed, as in a Kubernetes config map", async () => {
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
    expect(user.reports).toEqual(["reloaded"]);
  });

  it("may be missing for a while: that is reported once, and the previous version stays active", async () => {
    writeFileSync(file, limited(1));
    const { rules, user } = await follow();
    unlinkSync(file);
    expect(await user.reported(1)).toEqual([expect.stringMatching(/limits\.yaml: the rules cannot be read: the file does not exist\.$/)]);
    expect(rules.current.rules[0]?.limit).toBe(1);
    writeFileSync(file, limited(2));
    await becomes(rules, 2);
    expect(user.reports.slice(1)).toEqual(["reloaded"]);
  });

  it("may be replaced by something that is not a file: each change is reported, and the return of the file too", async () => {
    writeFileSync(file, limited(1));
    const { rules, user } = await follow();
    const steps: [() => void, RegExp][] = [
      [() => execFileSync("mkfifo", [file]), /it is not a regular file/],
      [() => mkdirSync(file), /it is a directory/],
      [() => symlinkSync(file, file), /ELOOP/],
    ];
    for (const [i, [put, message]] of steps.entries()) {
      rmSync(file, { recursive: true });
      await user.reported(2 * i + 1);
      put();
      expect((await user.reported(2 * i + 2)).slice(2 * i)).toEqual([
        expect.stringMatching(/the file does not exist/),
        expect.stringMatching(message),
      ]);
    }
    rmSync(file);
    await user.reported(7);
    writeFileSync(file, limited(1));
    await user.reported(8);
    expect(user.events.at(-1)).toEqual({ type: "rules-reloaded", source: file, version: rules.version });
  });

  it("that is half-written for long is refused, then loaded once it is complete", async () => {
    writeFileSync(file, limited(1));
    const { rules, user } = await follow();
    const text = limited(2);
    const descriptor = openSync(file, "w");
    await user.reported(1);
    writeSync(descriptor, text.slice(0, 20));
    await user.reported(2);
    writeSync(descriptor, text.slice(20));
    await becomes(rules, 2);
    expect(user.reports).toEqual([
      expect.stringContaining("1:1: The file must be a map, but is empty."),
      expect.stringMatching(/:2:\d+: /),
      "reloaded",
    ]);
  });

  it("with a mistake is reported once, and the next valid one is loaded", async () => {
    writeFileSync(file, limited(1));
    const { rules, user } = await follow();
    writeFileSync(file, "rules: [{ name: posts, limt: 5, window: 1m }]\n");
    const [refused] = await user.reported(1);
    expect(refused).toContain(`${file}:1:24: rules[0] has no option \`limt\`. Did you mean \`limit\`?`);
    writeFileSync(file, limited(2));
    await becomes(rules, 2);
    expect(user.reports).toEqual([refused, "reloaded"]);
  });

  it("has no effect after `close`", async () => {
    writeFileSync(file, limited(1));
    const closed = await follow();
    const other = await follow();
    await closed.rules.close();
    await closed.rules.close();
    writeFileSync(file, limited(2));
    await becomes(other.rules, 2);
    expect(closed.rules.current.rules[0]?.limit).toBe(1);
    expect(closed.user.reports).toEqual([]);
  });
});

describe("a file dated in the future, by another machine's clock", () => {
  const tomorrow = (): void => {
    const date = new Date(Date.now() + 86_400_000);
    utimesSync(file, date, date);
  };

  it("is followed like any other", async () => {
    writeFileSync(file, limited(1));
    tomorrow();
    const { rules, user } = await follow();
    for (const limit of [2, 3]) {
      writeFileSync(file, limited(limit));
      tomorrow();
      await becomes(rules, limit);
    }
    expect(user.reports).toEqual(["reloaded", "reloaded"]);
  });
});

describe("a process that only waits for `fileRules`", () => {
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
  const kinds = modules.flatMap((module) => dates.map((date) => ({ ...module, ...date })));

  it.each(kinds)("gets the rules of a file dated $dated, and then exits: $module", async ({ module, code, aheadMs }) => {
    writeFileSync(file, limited(7));
    const args = [`--input-type=${module}`, "-e", `${touch}\n${code}`, file, `${aheadMs}`];
    // Rejects unless the exit code is 0.
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: __dirname });
    expect(stdout).toBe("7\n");
  });
});

describe("the first file", () => {
  it.each<[string, () => void, RegExp]>([
    ["there", () => undefined, /the file does not exist/],
    ["a file", () => mkdirSync(file), /it is a directory/],
    ["a regular file", () => execFileSync("mkfifo", [file]), /it is not a regular file/],
    ["at most a megabyte", () => writeFileSync(file, Buffer.alloc(2 ** 20 + 1, "#")), /it has 1048577 bytes, above the maximum/],
    ["no dangling symlink", () => symlinkSync(join(folder, "nowhere"), file), /the file does not exist/],
    ["no symlink to itself", () => symlinkSync(file, file), /ELOOP/],
  ])("must be %s", async (_, make, message) => {
    make();
    await expect(fileRules(file)).rejects.toMatchObject({ code: "FLOODGATE_RULES_UNAVAILABLE", message: expect.stringMatching(message) });
  });

  it.each([
    [undefined, undefined, 'fileRules: `path` must be the path of a file, but was undefined. Write fileRules("limits.yaml").'],
    [null, undefined, "but was null."],
    ["", undefined, 'but was "".'],
    ["limits.yaml", null, "fileRules takes an object of options, but was given null. Write fileRules(..., { pollMs: 500 })."],
    ["limits.yaml", { pollms: 5 }, "fileRules has no option `pollms`. Did you mean `pollMs`?"],
    ["limits.yaml", { pollMs: 0 }, "fileRules: `pollMs` must be a whole number of at least 1, but was 0. Write pollMs: 500."],
  ])("needs a path and valid options: %o, %o", async (path, options, message) => {
    await expect(fileRules(path as never, options as never)).rejects.toThrow(message);
  });

  it("must be valid", async () => {
    writeFileSync(file, limited(-1));
    const error = await fileRules(file).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(RulesError);
    expect(String(error)).toContain(`${file}:2:27: `);
  });
});
