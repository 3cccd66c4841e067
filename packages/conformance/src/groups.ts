/** The test runner: `describe` and `it` of Vitest, Jest or `node:test`. */
export interface Runner {
  describe(name: string, body: () => void): unknown;
  it: {
    (name: string, body: () => Promise<void>, timeoutMs?: number): unknown;
    skip(name: string, body: () => void): unknown;
  };
}

/** Groups of a suite that your subject cannot pass, each with the reason. The report shows it as a skipped test. */
export type LeftOut<Group extends string> = { readonly [G in Group]?: string };

/** Runs a suite, group by group. */
export function runGroups<Group extends string, Suite>(
  { describe, it }: Runner,
  name: string,
  groups: Readonly<Record<Group, (suite: Suite) => void>>,
  suite: Suite,
  leaveOut: LeftOut<Group> = {},
): void {
  const names = Object.keys(groups) as Group[];
  for (const [group, reason] of Object.entries(leaveOut)) {
    if (!Object.hasOwn(groups, group)) throw new TypeError(`leaveOut names no group "${group}". The groups are: ${names.join(", ")}.`);
    if (typeof reason !== "string" || reason.trim() === "") throw new TypeError(`leaveOut needs a reason for "${group}": a text.`);
  }
  describe(name, () => {
    for (const group of names) {
      const reason = leaveOut[group];
      describe(group, () => (reason === undefined ? groups[group](suite) : void it.skip(`left out: ${reason}`, () => undefined)));
    }
  });
}
