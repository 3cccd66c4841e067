import { formatDuration } from "@floodgate/core/rules";

// The kinds of the states that Redis holds, as core names them: `fixed-window 60000`. They tell the algorithm and the times of a policy.

/** A kind of state in words: `fixed-window of 1m`. */
export function kindText(kind: string): string {
  const [, own = kind, heldMs] = /^(.*) held (\d+)$/.exec(kind) ?? [];
  if (heldMs !== undefined) return `${kindText(own)}, held for ${formatDuration(Number(heldMs))}`;
  if (kind.startsWith("calendar-window ")) return kind;
  const [name, ms, parts] = partsOf(kind);
  return `${name} of ${formatDuration(ms)}${parts === undefined ? "" : ` in ${parts} parts`}`;
}

/** What to write for counts of these kinds. The text of `--policy` has no words for quotas, slots and holds. */
export function policyAdvice(kinds: readonly string[]): string {
  const advice = kinds.map((kind) => (hasText(kind) ? policyOption(kind) : "a rule in a rules file or in Redis"));
  return [...new Set(advice)].join(" or ");
}

const hasText = (kind: string): boolean => !/^(calendar-window|concurrency) | held \d+$/.test(kind);

/** The option that names the policy of counts of this kind, as far as Redis knows it. */
export function policyOption(kind: string | undefined): string {
  return `--policy '${kind !== undefined && hasText(kind) ? policyExample(kind) : "<its policy>"}'`;
}

/** What to write for `--policy`, with a place for the limit. */
function policyExample(kind: string): string {
  const [name, ms, parts] = partsOf(kind);
  const numbers = /^token|^leaky/.test(name) ? "<capacity> <units>" : "<limit>";
  return `${name.replace(" smooth", "")} ${numbers}/${ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`}${parts === undefined ? "" : ` buckets=${parts}`}`;
}

function partsOf(kind: string): [name: string, ms: number, parts: string | undefined] {
  const [, name = "", ms, parts] = /^(.*?) (\d+)(?: (\d+))?$/.exec(kind) ?? [];
  return [name, Number(ms), parts === "1" ? undefined : parts];
}
