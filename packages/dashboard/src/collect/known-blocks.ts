import type { KeyBlock } from "@floodgate/core/store";

/** Far more keys than the page shows. A key that is not remembered has no mark. */
const mostKeys = 1000;

/** The blocks and bans of keys that were rejected for them, newest last. */
export class KnownBlocks {
  readonly #blocks = new Map<string, KeyBlock>();

  /** @param block undefined if the key is not blocked now. */
  note(rule: string, key: string, block: KeyBlock | undefined): void {
    if (block === undefined && this.#blocks.size === 0) return;
    const id = idOf(rule, key);
    this.#blocks.delete(id);
    if (block === undefined) return;
    this.#blocks.set(id, block);
    if (this.#blocks.size > mostKeys) this.#blocks.delete(this.#blocks.keys().next().value as string);
  }

  of(rule: string, key: string): KeyBlock | undefined {
    return this.#blocks.get(idOf(rule, key));
  }
}

/** A rule's name and a key can hold anything, so the name's length goes first. */
function idOf(rule: string, key: string): string {
  return `${rule.length}:${rule}${key}`;
}
