import type { Fault, Setup } from "./setup.js";
import type { Violation } from "./violation.js";
import { World } from "./world.js";

/** What an exploration has found. */
export interface Explored {
  /** How many different states were reached. */
  readonly states: number;
  /** The steps to the first state in which a bound does not hold. */
  readonly trace: readonly string[] | undefined;
  readonly violation: string | undefined;
}

const most = 500_000;

/** Takes every step from every state that can be reached, breadth first, and checks all bounds in each. Stops at the first violation. */
export function explore(setup: Setup, fault?: Fault): Explored {
  const first = new World(setup, fault);
  const seen = new Set([first.id()]);
  let edge: { world: World; trace: Trace }[] = [{ world: first, trace: undefined }];
  while (edge.length > 0) {
    const next: typeof edge = [];
    for (const { world, trace } of edge) {
      for (const [name, take] of world.steps()) {
        const after = world.clone();
        const here: Trace = { step: `${after.nowMs} ms: ${name}`, before: trace };
        try {
          take(after);
          after.check();
          const id = after.id();
          if (seen.has(id)) continue;
          seen.add(id);
          after.clone().checkEnd();
        } catch (error) {
          return { states: seen.size, trace: listed(here), violation: (error as Violation).message };
        }
        next.push({ world: after, trace: here });
      }
    }
    edge = next;
    if (seen.size > most) throw new Error(`There are more than ${most} states. Explore less.`);
  }
  return { states: seen.size, trace: undefined, violation: undefined };
}

type Trace = { readonly step: string; readonly before: Trace } | undefined;

function listed(trace: Trace): string[] {
  return trace === undefined ? [] : [...listed(trace.before), trace.step];
}
