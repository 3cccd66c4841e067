import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { runs } from "../../../../test/runs.js";
import { policies } from "../../../conformance/src/store/algorithms.js";
import { scriptsOf } from "../../../conformance/src/store/scripts.js";
import { asCharge, type Cells, createLimit, type Decision, heldPolicy, nothingReserved, renewIn, settleIn } from "../../src/store.js";

/** Cells of other keys. They read as times, or as many units. */
const foreign = new Float64Array(8).fill(1_789_948_800_001);

/** The number of the only state. */
const state = 1;

/** Policies, some of which hold units. */
const all = fc.tuple(policies, fc.integer({ min: 1, max: 2000 }), fc.boolean()).map(([policy, holdMs, holds]) => {
  const { algorithm } = createLimit("test", policy);
  const canHold = algorithm.renew === undefined && !algorithm.delays && !algorithm.countsRejected?.(policy);
  return holds && canHold ? heldPolicy("test", policy, holdMs) : policy;
});

test("a state is the same between those of other keys as alone; no call writes outside it, or writes to look; a settlement leaves zeros if nothing counts (but for lists)", () => {
  fc.assert(
    fc.property(scriptsOf(all, { refunds: true, settles: true, jumps: true, impossible: true }), ([policy, steps]) => {
      const limit = createLimit("api", policy);
      const { algorithm } = limit;
      const alone = new Float64Array(1000);
      let size = 0;
      /** Makes a call on both. */
      const both = <T>(call: (cells: Cells, at: number) => T, isLook = false): T => {
        size = Math.max(size, algorithm.size(policy, alone, 0));
        const before = alone.slice(0, size);
        const among = Float64Array.of(...foreign, ...before, ...foreign);
        const answer = call(alone, 0);
        assert.deepEqual(call(among, foreign.length), answer);
        assert.deepEqual(among, Float64Array.of(...foreign, ...alone.slice(0, size), ...foreign));
        if (isLook) assert.deepEqual(alone.slice(0, size), before);
        return answer;
      };
      const made: (Decision | undefined)[] = [];
      for (const step of steps) {
        const { atMs: nowMs } = step;
        both((cells, at) => algorithm.decide(limit, cells, at, nowMs, "cost" in step ? step.cost : 1, false), true);
        both((cells, at) => algorithm.view(policy, cells, at, nowMs), true);
        both((cells, at) => algorithm.endOf?.(policy, cells, at, nowMs), true);
        const charged = "cost" in step ? undefined : made["refund" in step ? step.refund : step.settle];
        if ("cost" in step) made.push(both((cells, at) => algorithm.decide(limit, cells, at, nowMs, step.cost, true)));
        else {
          made.push(undefined);
          const charge = charged?.allowed === true ? { ...asCharge(charged), state } : nothingReserved;
          if (algorithm.renew !== undefined) both((cells, at) => renewIn(limit, cells, at, nowMs, charge, state));
          const units = both((cells, at) => settleIn(limit, cells, at, nowMs, charge, "refund" in step ? 0 : step.realCost, state));
          // So stores see that nothing is left to keep.
          if (units !== 0 && !algorithm.grows && algorithm.view(policy, alone, 0, nowMs).kind === "empty")
            assert.equal(
              alone.findIndex((cell) => cell !== 0),
              -1,
            );
        }
      }
    }),
    runs(800),
  );
});
