import { describe, it } from "vitest";
import { accountCases, type LimiterMaker } from "../../../conformance/src/store/accounts.js";
import type { Suite, World } from "../../../conformance/src/store/world.js";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { createLimiter, type Store } from "../../src/index.js";

/** Limiters whose store is down, so the fallback decides and settles everything. */
class Away implements LimiterMaker {
  readonly store: Store<"async">;
  readonly #fallback = simpleStore(() => 1_789_948_800_000);
  #used = 0;

  constructor() {
    const away = () => Promise.reject(new Error("The store is away"));
    const decides = { consume: away, consumeAll: away, peek: away };
    const reset = () => Promise.resolve();
    this.store = { mode: "async", ...decides, settle: away, reset, block: away, unblock: away, keyState: away };
  }

  runs(numRuns: number): { numRuns: number } {
    return { numRuns };
  }

  fresh(word = "key"): string {
    return `${word}-${this.#used++}`;
  }

  limiter: World["limiter"] = (policy, name = this.fresh("limit"), receiptSecret) => {
    const secret = receiptSecret === undefined ? {} : { receiptSecret };
    return createLimiter({ name, policy, store: this.store, onStoreError: this.#fallback, ...secret });
  };
}

const suite: Suite = {
  it: (name, body) => void it(name, () => body(new Away() as unknown as World), 120_000),
};

describe("a fallback", () => accountCases(suite));
