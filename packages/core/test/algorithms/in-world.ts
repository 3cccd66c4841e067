import { test } from "vitest";
import { inWorld, type World } from "../../../conformance/src/store/world.js";
import { simpleStore } from "../../../conformance/test/simple-store.js";

/** A test over the simplest store, with a clock of its own. */
export function it(name: string, body: (world: World) => Promise<void>): void {
  test(name, () => inWorld(simpleStore, body));
}
