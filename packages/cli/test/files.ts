import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

/** A temporary folder, deleted after the tests of a file. */
export function tempFolder(): { write(name: string, text: string): string; path(name: string): string } {
  const folder = mkdtempSync(join(tmpdir(), "floodgate-cli-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const path = (name: string): string => join(folder, name);
  return {
    path,
    write(name, text) {
      writeFileSync(path(name), text);
      return path(name);
    },
  };
}

export const limits = `rules:
  - name: posts
    match: { method: POST, path: /posts }
    key: user
    policy: { algorithm: fixed-window, limit: 1, window: 365d }
    plans: { pro: { limit: 5 } }
  - name: per-ip
    limit: 2
    window: 365d
    ban: { after: 2, within: 1h, for: 1d }
  - name: login
    match: { method: POST, path: /login, header: { x-app: [web, ios] } }
    key: [ip, user]
    limit: 5
    window: 15m
    mode: shadow
`;
