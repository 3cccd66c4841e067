import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test, vi } from "vitest";
import { withRepeatable } from "../src/logs.js";

test("a log that can be read once is kept in a file without a name, so that a command that is killed leaves nothing behind", async () => {
  const folder = mkdtempSync(join(tmpdir(), "floodgate-cli-"));
  vi.stubEnv("TMPDIR", folder);
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });
  const chunks = ["a\n", "b\n"].map((line) => Buffer.from(line));
  async function* open() {
    yield* chunks;
  }
  await withRepeatable([{ source: { name: "stdin", once: true, open }, bytes: undefined }], async ([kept]) => {
    expect(readdirSync(folder)).toEqual([]);
    expect(kept).toMatchObject({ source: { name: "stdin" }, bytes: 4 });
    for (let times = 0; times < 2; times++) expect(kept && (await text(kept.source.open()))).toBe("a\nb\n");
  });
});
