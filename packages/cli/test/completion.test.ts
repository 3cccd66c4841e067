import { expect, test } from "vitest";
import { floodgate, floodgateProcess } from "./command.js";

test.each(["bash", "zsh", "fish", "powershell"])(
  "completion prints a script for %s, which asks the command for suggestions",
  async (shell) => {
    const { code, out, err } = await floodgateProcess(["completion", shell]);
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
  const { out } = await floodgateProcess(["complete", "--", ...words]);
  const suggested = out.split("\n").map((line) => line.split("\t", 1)[0]);
  expect(suggested).toEqual(expect.arrayContaining(expected));
});

test("completion refuses an unknown shell", async () => {
  expect(await floodgateProcess(["completion", "tcsh"])).toMatchObject({ code: 64, err: expect.stringContaining("zsh, bash, fish") });
});

test.each([
  ["help", "top"],
  ["top", "--help"],
])("%s %s prints the help of a command", async (...args) => {
  expect(await floodgate(args)).toMatchObject({ code: 0, out: expect.stringContaining("Usage: floodgate top [options]") });
});

test.each(["-v", "--version"])("%s prints the version", async (flag) => {
  expect(await floodgate([flag])).toMatchObject({ code: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+/) });
});
