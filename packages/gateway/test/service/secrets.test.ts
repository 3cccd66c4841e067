import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, test } from "vitest";
import { resolveSettings } from "../../src/config/resolve.js";
import { readSecrets } from "../../src/service/secrets.js";
import { temporaryFolder } from "../world.js";

const secret = "0123456789abcdef0123456789abcdef";

function fileWith(text: string | Buffer, mode = 0o600): string {
  const path = join(temporaryFolder(), "secret");
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

function settingsWith(more: Record<string, unknown>) {
  return resolveSettings("serve", { code: { rules: "limits.yaml", ...more } }).settings;
}

test("a line break at the end of a file, also of Windows, is no part of its secret", () => {
  for (const end of ["", "\n", "\r\n", "\n\n"]) {
    expect(readSecrets(settingsWith({ adminTokenFile: fileWith(`${secret}${end}`) })).adminToken).toBe(secret);
  }
});

test("the first of several secrets hashes keys, unless `keySecret` does", () => {
  const secretFile = fileWith(`${secret}\n${secret}2\n`);
  expect(readSecrets(settingsWith({ secretFile }))).toMatchObject({ receipts: [secret, `${secret}2`], key: secret });
  expect(readSecrets(settingsWith({ secretFile, keySecret: `${secret}3` })).key).toBe(`${secret}3`);
});

it.each<[string, string | Buffer, string]>([
  ["is empty", "\n\n", "it is empty"],
  ["is too short", `${secret}\nshort`, "each secret must have at least 32 characters, but one has 5"],
  ["is binary", Buffer.from([0, 1, 2, 255]), "printable ASCII"],
  ["is huge", "x".repeat(70_000), "above the maximum of 65536"],
])("a file that %s is refused, without showing it", (_, text, message) => {
  const secretFile = fileWith(text);
  expect(() => readSecrets(settingsWith({ secretFile }))).toThrow(`\`secretFile\`: ${secretFile} cannot be used: `);
  expect(() => readSecrets(settingsWith({ secretFile }))).toThrow(message);
});

test("a file that is missing, or a directory, is refused", () => {
  const folder = temporaryFolder();
  expect(() => readSecrets(settingsWith({ adminTokenFile: join(folder, "none") }))).toThrow("it does not exist");
  expect(() => readSecrets(settingsWith({ adminTokenFile: folder }))).toThrow("it is a directory");
});

test("a file that other users may read is noted", () => {
  expect(readSecrets(settingsWith({ secretFile: fileWith(secret, 0o644) })).notes).toEqual([expect.stringMatching(/chmod 600/)]);
  expect(readSecrets(settingsWith({ secretFile: fileWith(secret) })).notes).toEqual([]);
});
