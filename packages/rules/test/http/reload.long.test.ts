import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { App } from "./app.js";

const steadyLimit = 1_000_000_000;
/** `npm run test:long` does them all. Every fourth is preceded by one of the broken files. */
const versions = 100;

/** Two rules that change together, and one that never changes. */
const version = (n: number): string => `
rules:
  - { name: steady, key: global, policy: { algorithm: fixed-window, limit: ${steadyLimit}, window: 365d } }
  - { name: a-${n}, key: global, match: { path: /* }, limit: ${1_000_000 + n}, window: 1h }
  - { name: b-${n}, key: ip, policy: { algorithm: gcra, limit: ${1_000_000 + n}, window: 1s } }
`;

const broken = [
  (n: number) => version(n).replace("window: 365d", "window: never"),
  (n: number) => version(n).slice(0, -30),
  (n: number) => version(n).replace("key: ip", "key: sesion"),
  () => "",
];

let folder: string;
let file: string;
let app: App;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "floodgate-rules-"));
  file = join(folder, "limits.yaml");
  await writeFile(file, version(0));
  app = await App.start(file, "memory", "reload");
});

afterAll(async () => {
  await app?.stop();
  await rm(folder, { recursive: true });
});

/** Replaces the file, as editors do, and returns the app's next event. */
async function put(text: string): Promise<{ event: string; message?: string }> {
  const event = app.next();
  await writeFile(`${file}.new`, text);
  await rename(`${file}.new`, file);
  return event;
}

it(`${versions} reloads under load lose no request and no count, and no request sees half a version`, {
  timeout: 120_000,
}, async () => {
  let running = true;
  const seen: { status: number; policies: string }[] = [];
  const client = async (): Promise<void> => {
    while (running) {
      const { status, headers } = await app.send({ path: "/some/path" });
      seen.push({ status, policies: String(headers["ratelimit-policy"]) });
    }
  };
  const clients = Array.from({ length: 20 }, client);

  for (let n = 1; n <= versions; n++) {
    if (n % 4 === 0) {
      const before = seen.length;
      const make = broken[(n / 4) % broken.length] as (n: number) => string;
      expect(await put(make(n))).toMatchObject({ event: "refused", message: expect.stringMatching(/limits\.yaml:\d+:\d+: /) });
      // The previous version stays active.
      await expect.poll(() => seen.length).toBeGreaterThan(before + 20);
    }
    expect(await put(version(n))).toMatchObject({ event: "reloaded" });
  }
  running = false;
  await Promise.all(clients);

  expect(seen.length).toBeGreaterThan(10 * versions);
  expect(seen.filter(({ status }) => status !== 200)).toEqual([]);
  const whole = /^"steady";q=\d+;w=31536000, "a-(\d+)";q=(\d+);w=3600, "b-(\d+)";q=(\d+);w=1$/;
  const met = seen.map(({ policies }) => {
    const [, ...numbers] = whole.exec(policies) ?? [];
    const [a, limitA, b, limitB] = numbers.map(Number) as [number, number, number, number];
    expect([b, limitA, limitB], policies).toEqual([a, 1_000_000 + a, 1_000_000 + a]);
    return a;
  });
  expect(new Set(met).size).toBeGreaterThan(versions / 2);
  expect(await app.peek("steady", "global")).toMatchObject({ remaining: steadyLimit - seen.length });
});
