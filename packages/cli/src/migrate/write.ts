const unitsMs = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
  ["ms", 1],
] as const;

/** A number of milliseconds as code: `"15m"`. */
export function durationCode(ms: number): string {
  const [unit, unitMs] = unitsMs.find(([, length]) => ms % length === 0) ?? ["ms", 1];
  return JSON.stringify(`${ms / unitMs}${unit}`);
}

/** A text in the format of the `ms` package, such as "10 s" or "1 minute", in milliseconds; undefined if it is another text. */
export function parseMs(text: string): number | undefined {
  const [, count, unit = ""] = /^\s*(\d{1,12})\s*([a-z]*)\s*$/i.exec(text) ?? [];
  if (count === undefined) return undefined;
  const found = units.find(([pattern]) => pattern.test(unit.toLowerCase()));
  return found === undefined ? undefined : Number(count) * found[1];
}

const units: readonly (readonly [RegExp, number])[] = [
  [/^(ms|milliseconds?)?$/, 1],
  [/^s(ecs?|econds?)?$/, 1000],
  [/^m(ins?|inutes?)?$/, 60_000],
  [/^h(rs?|ours?)?$/, 3_600_000],
  [/^d(ays?)?$/, 86_400_000],
];

/** A text as a name of a limit: "loginRateLimiter" becomes "login". Undefined if nothing is left. */
export function nameFrom(text: string): string | undefined {
  const name = text
    .replace(/([a-z\d])([A-Z])/g, "$1-$2")
    .toLowerCase()
    .replace(/[^a-z\d]+/g, "-")
    .replace(/(^|-)(rate|limiter|limit|ratelimit|ratelimiter|throttle|rl)(?=-|$)/g, "")
    .replace(/^-+|-+$/g, "");
  return name === "" ? undefined : name;
}
