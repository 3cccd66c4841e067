import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, vi } from "vitest";

/** Expects that nothing refers to an object once `use` has ended. */
export async function expectGarbage(use: () => Promise<object>): Promise<void> {
  setFlagsFromString("--expose_gc");
  const gc = runInNewContext("gc") as () => void;
  const used = async (): Promise<WeakRef<object>> => new WeakRef(await use());
  const object = await used();
  await vi.waitFor(() => {
    gc();
    // A failed assertion would keep what it shows.
    expect(object.deref() === undefined).toBe(true);
  }, 20_000);
}
