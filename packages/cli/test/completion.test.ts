import { expect, test, vi } from "vitest";
import { type Ended, floodgate } from "./command.js";
import { floodgateProcess } from "./process.js";

/** Runs the command in this process. The library of completion prints with `console.log`. */
async function completion(...args: string[]): Promise<Ended> {
  let printed = "";
  const log = vi.spyOn(console, "log").mockImplementation((text) => {
    printed += `${text}\n`;
  });
  const ended = await floodgate(args);
  log.mockRestore();
  return { ...ended, out: ended.out + printed };
}

test("completion prints its script to standard output", async () => {
  expect(await floodgateProcess(["completion", "bash"])).toEqual(await completion("completion", "bash"));
});

test.each(["bash", "zsh", "fish", "powershell"])(
  "completion prints a script for %s, which asks the command for suggestions",
  async (shell) => {
    const { code, out, err } = await completion("completion", shell);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/floodgate complete '?--/);
  },
);

test.each([
  [["ru"], ["rules"]],
  [
    ["status", "--r"],
    ["--rule", "--redis", "--rules-key"],
  ],
  [["un"], ["unblock"]],
])("%j is completed to %j", async (words, expected) => {
  const { out } = await completion("complete", "--", ...words);
  const suggested = out.split("\n").map((line) => line.split("\t", 1)[0]);
  expect(suggested).toEqual(expect.arrayContaining(expected));
});

test("completion refuses an unknown shell", async () => {
  expect(await completion("completion", "tcsh")).toMatchObject({ code: 64, err: expect.stringContaining("zsh, bash, fish") });
});

test.each([
  ["help", "top"],
  ["top", "--help"],
])("%s %s prints the help of a command", async (...args) => {
  expect(await floodgate(args)).toMatchObject({ code: 0, out: expect.stringContaining("Usage: floodgate top [options]") });
});

test("help of an unknown command says so, and which one is meant", async () => {
  expect(await floodgate(["help", "chek"])).toEqual(await floodgate(["chek"]));
});

test.each(["-v", "--version"])("%s prints the version", async (flag) => {
  expect(await floodgate([flag])).toMatchObject({ code: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+/) });
});
