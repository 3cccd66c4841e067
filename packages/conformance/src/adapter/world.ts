import assert from "node:assert/strict";
import type { FloodgateEvent, Store } from "@floodgate/core";
import type { Clock } from "@floodgate/core/store";
import { parseList } from "structured-headers";

/** 15 s into an arbitrary hour; each test's clock begins here. */
export const startMs = 1_789_948_815_000;

/** The client's address, unless a test changes it. */
export const self = "127.0.0.1";

/** What a test has without an app: a manual clock, a store, and a listener. */
export class World {
  nowMs: number = startMs;
  readonly store: Store<"sync">;
  /** All events but those of whole requests. */
  readonly events: FloodgateEvent[] = [];
  /** The events of whole requests. */
  readonly requests: FloodgateEvent[] = [];

  constructor(store: (clock: Clock) => Store<"sync">) {
    this.store = store(() => this.nowMs);
  }

  /** An `onEvent` that records events, and a promise of the first event of a type. */
  listen(type: FloodgateEvent["type"]): { onEvent: (event: FloodgateEvent) => void; heard: Promise<FloodgateEvent> } {
    let hear: (event: FloodgateEvent) => void = () => undefined;
    const heard = new Promise<FloodgateEvent>((resolve) => {
      hear = resolve;
    });
    const onEvent = (event: FloodgateEvent): void => {
      // Whole requests have cases of their own.
      if (event.type === "request") this.requests.push(event);
      else this.events.push(event);
      if (event.type === type) hear(event);
    };
    return { onEvent, heard };
  }
}

/** One turn of the event loop. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await turn();
}

/** A promise, and the function that resolves it. */
export function gate(): { opened: Promise<void>; open: () => void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

const methods = ["consume", "consumeAll", "peek", "settle", "reset", "block", "unblock", "keyState"] as const;

/** Makes a store asynchronous. */
export function later(store: Store<"sync">): Store<"async"> {
  const call =
    (method: (typeof methods)[number]) =>
    async (...args: unknown[]) =>
      (store[method] as (...args: unknown[]) => unknown)(...args);
  return { mode: "async", ...Object.fromEntries(methods.map((method) => [method, call(method)])) } as Store<"async">;
}

/** Makes a store asynchronous, which decides `count` requests at a time and answers them all in one turn, as stores do that send batches. */
export function together(store: Store<"sync">, count: number): Store<"async"> {
  const waiting: (() => void)[] = [];
  const consume: Store<"async">["consume"] = (...args) =>
    new Promise((resolve) => {
      waiting.push(() => resolve(store.consume(...args)));
      if (waiting.length === count) for (const answer of waiting.splice(0)) answer();
    });
  return { ...later(store), consume };
}

type Items = Record<string, Record<string, unknown>>;

/** The items of a list header, by name. Parses strictly, as clients do: they ignore a malformed field entirely. */
export function items(response: { readonly headers: Readonly<Record<string, string | undefined>> }, header: string): Items {
  const found: Items = {};
  for (const [name, parameters] of parseList(response.headers[header] ?? "")) {
    assert.equal(typeof name, "string", `${header}: an item must be a quoted string`);
    assert.ok(!(String(name) in found), `${header}: ${name} stands twice`);
    found[String(name)] = Object.fromEntries(parameters);
  }
  return found;
}
