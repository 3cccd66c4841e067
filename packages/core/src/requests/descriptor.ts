export interface DescriptorEntry {
  readonly key: string;
  readonly value: string;
}

/** A descriptor of a request to Envoy's rate limit service, as rules see it. */
export interface Descriptor {
  readonly domain: string;
  /** In the order in which they were sent. Several entries may have one key. */
  readonly entries: readonly DescriptorEntry[];
  /** How many requests it stands for: a rule's cost is multiplied by it. With 0, limits are looked at and nothing is charged. */
  readonly hits: number;
  /** Whether its hits have happened already: they are recorded, and never refused. */
  readonly isUsage?: boolean;
}

/** The value of the entry with this key. Values of several entries are joined by ", ". Returns undefined if no entry has the key. */
export function entryValue({ entries }: Descriptor, key: string): string | undefined {
  let found: string | undefined;
  for (const entry of entries) {
    if (entry.key === key) found = found === undefined ? entry.value : `${found}, ${entry.value}`;
  }
  return found;
}
