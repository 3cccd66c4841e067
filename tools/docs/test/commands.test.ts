import { processIo, run } from "@floodgate/cli";
import { documentOf, documents } from "@floodgate/docs";
import { beforeAll, expect, it } from "vitest";

/** Each line that calls `floodgate`, in blocks of commands and in inline code. */
const calls = documents().flatMap(({ file, blocks, codes }) => {
  const inBlocks = blocks
    .filter(({ language }) => ["sh", "console"].includes(language))
    .flatMap(({ code, line }) => code.split("\n").map((text, i) => ({ text, line: line + i })));
  const inline = codes.map(({ code, line }) => ({ text: code, line }));
  return [...inBlocks, ...inline].flatMap(({ text, line }) => {
    const [, command, rest = ""] = /^(?:\$ )?(?:npx )?(?:@floodgate\/cli|floodgate) ([a-z]+)(?= |$)(.*)/.exec(text) ?? [];
    return command === undefined || command === "help" ? [] : [{ place: `${file}:${line}`, command, flags: flagsOf(rest) }];
  });
});

function flagsOf(text: string): string[] {
  // Behind a pipe, a redirection or a comment begins something else.
  const [own = ""] = text.split(/ [|>#&] ?|"[^"]*"|'[^']*'/);
  return [...own.matchAll(/(?<= )(--[a-z][a-z-]*)/g)].map(([, flag = ""]) => flag);
}

/** The flags of each command, and of `floodgate` itself as "". */
const known = new Map<string, Set<string>>();

beforeAll(async () => {
  for (const command of new Set(["", ...calls.map(({ command }) => command)])) {
    const text = await help(command);
    known.set(command, new Set([...text.matchAll(/(--[a-z][a-z-]*)/g)].map(([, flag = ""]) => flag)));
  }
});

it("each command that the docs call exists, with the flags that they give", async () => {
  const wrong = calls.flatMap(({ place, command, flags }) => {
    const own = known.get(command) ?? new Set();
    if (!own.has("--help")) return [`${place}: there is no command ${command}`];
    return flags
      .filter((flag) => !own.has(flag) && !known.get("")?.has(flag))
      .map((flag) => `${place}: floodgate ${command} has no ${flag}`);
  });
  expect(wrong.join("\n")).toBe("");
  expect(calls.length).toBeGreaterThan(20);
  expect(await help("no-such-command")).toBe("");
});

it("each command is in the README of the command line", async () => {
  const all = [...(await help("")).matchAll(/^ {2}([a-z]+)(?= .*)/gm)].map(([, name = ""]) => name);
  const readme = documentOf("packages/cli/README.md").text;
  expect(all.length).toBeGreaterThan(10);
  expect(all.filter((name) => !readme.includes(`floodgate ${name}`) && !readme.includes(`\`${name}`))).toEqual([]);
});

/** What `floodgate <command> --help` prints; nothing if there is no such command. */
async function help(command: string): Promise<string> {
  const parts: string[] = [];
  const code = await run([...(command === "" ? [] : [command]), "--help"], {
    ...processIo,
    out: (part) => void parts.push(part),
    err: () => undefined,
  });
  const text = parts.join("");
  return code === 0 && text.includes(`Usage: ${`floodgate ${command}`.trim()} `) ? text : "";
}
