import { createHmac, randomBytes } from "node:crypto";
import { maskKey } from "@floodgate/core/rules";

/** What the page shows of a key: its text, masked unless `showKeys` is true, and an id that stands for the key. */
export class KeyLabels {
  readonly #showKeys: boolean;
  #secret: string | Buffer = randomBytes(32);

  constructor(showKeys: boolean) {
    this.#showKeys = showKeys;
  }

  /** Processes that share their figures share the secret too, so that each knows the others' ids. */
  use(secret: string): void {
    this.#secret = secret;
  }

  shown(key: string): string {
    return this.#showKeys ? key : maskKey(key);
  }

  /** Says nothing of the key to somebody without the secret. */
  idOf(key: string): string {
    return createHmac("sha256", this.#secret).update(key).digest("base64url").slice(0, 22);
  }
}
