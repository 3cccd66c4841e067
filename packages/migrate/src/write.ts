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

/** Reads a duration as the package `ms` does: "15 minutes", "1h". Returns milliseconds, or undefined for any other text. */
export function msOfWords(text: string): number | undefined {
  const [, count, word] = /^(\d+) ?(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)$/i.exec(text.trim()) ?? [];
  const unit = word === undefined || /^(ms|milli)/i.test(word) ? word && "ms" : word[0]?.toLowerCase();
  const [, unitMs] = unitsMs.find(([name]) => name === unit) ?? [];
  return unitMs && Number(count) * unitMs;
}

/** A text as a name of a limit: "loginRateLimiter" becomes "login". Undefined if nothing is left. */
export function nameFrom(text: string): string | undefined {
  const name = text
    .replace(/([a-z\d])([A-Z])|([A-Z])(?=[A-Z][a-z])/g, "$1$3-$2")
    .toLowerCase()
    .replace(/[^a-z\d]+/g, "-")
    .replace(/(^|-)(rate|limiter|limit|ratelimit|ratelimiter|throttle|rl|middleware)(?=-|$)/g, "")
    .replace(/^-+|-+$/g, "");
  return name === "" ? undefined : name;
}
