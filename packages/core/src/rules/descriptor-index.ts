import type { Descriptor } from "../requests/descriptor.js";
import { getOrMake } from "../support/maps.js";
import { fitsDescriptor } from "./descriptor-rule.js";
import type { CompiledMatch, DescriptorMatch } from "./match.js";
import { ascending } from "./match-index.js";

/** Rules of one domain, by their places in the list. */
class ByEntry {
  /** Under a value that an entry must have. */
  readonly #values = new Map<string, Map<string, number[]>>();
  /** Under the key of an entry that must be there. */
  readonly #present = new Map<string, number[]>();
  readonly #rest: number[] = [];

  add(place: number, { entries }: DescriptorMatch): void {
    const exact = entries.find(({ values }) => values !== undefined);
    const required = entries.find(({ absent }) => !absent);
    if (exact?.values !== undefined) {
      const byValue = getOrMake(this.#values, exact.name, () => new Map<string, number[]>());
      for (const value of exact.values) getOrMake(byValue, value, newList).push(place);
    } else if (required !== undefined) getOrMake(this.#present, required.name, newList).push(place);
    else this.#rest.push(place);
  }

  find({ entries }: Descriptor, found: number[]): void {
    for (const place of this.#rest) found.push(place);
    for (const { key, value } of entries) {
      for (const place of this.#present.get(key) ?? none) found.push(place);
      for (const place of this.#values.get(key)?.get(value) ?? none) found.push(place);
    }
  }
}

/** Finds the rules that match a descriptor: by domain, then by an entry. Cost follows matches, not total rules. */
export class DescriptorIndex<Rule extends { readonly match: CompiledMatch | undefined }> {
  readonly #rules: readonly Rule[];
  readonly #domains = new Map<string, ByEntry>();
  /** Rules without a domain, or with a pattern of domains. */
  readonly #everyDomain = new ByEntry();

  /** Leaves out rules for HTTP requests. */
  constructor(rules: readonly Rule[]) {
    this.#rules = rules;
    rules.forEach(({ match }, place) => {
      const descriptor = match?.descriptor;
      if (descriptor === undefined || descriptor === "unread") return;
      const domains = descriptor.domain?.values;
      if (domains === undefined) this.#everyDomain.add(place, descriptor);
      else for (const domain of new Set(domains)) getOrMake(this.#domains, domain, () => new ByEntry()).add(place, descriptor);
    });
  }

  find(descriptor: Descriptor): readonly Rule[] {
    const found: number[] = [];
    this.#everyDomain.find(descriptor, found);
    this.#domains.get(descriptor.domain)?.find(descriptor, found);
    const places = found.length > 1 ? [...new Set(found)].sort(ascending) : found;
    return places
      .map((place) => this.#rules[place] as Rule)
      .filter(({ match }) => fitsDescriptor(match?.descriptor as DescriptorMatch, descriptor));
  }
}

const none: readonly number[] = [];
const newList = (): number[] => [];
