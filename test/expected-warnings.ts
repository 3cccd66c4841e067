import { afterEach, beforeEach, expect, type MockInstance, vi } from "vitest";

/** The tests of this file may cause these warnings, by their codes or first words. They are not printed; any other fails its test. */
export function expectWarnings(...expected: readonly string[]): void {
  let warn: MockInstance<typeof console.warn>;
  beforeEach(() => {
    warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  });
  afterEach(() => {
    const others = warn.mock.calls.map(String).filter((text) => !expected.some((start) => text.startsWith(`[floodgate] ${start}`)));
    warn.mockRestore();
    expect(others).toEqual([]);
  });
}
