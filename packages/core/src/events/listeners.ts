import { invalidOption, reasonOf, shown } from "../support/errors.js";
import { isPromise } from "../support/promises.js";
import { warnOnce } from "../support/warn.js";
import type { EventListener, FloodgateEvent, WarningCode } from "./events.js";

const wrappers = new WeakMap<EventListener, EventListener>();

/** Wraps a listener so that its errors fail no request; the first one is logged. The same listener returns the same wrapper. */
export function listenerOf(onEvent: EventListener): EventListener;
export function listenerOf(onEvent: EventListener | undefined): EventListener | undefined;
export function listenerOf(onEvent: EventListener | undefined): EventListener | undefined {
  if (onEvent === undefined) return undefined;
  const known = wrappers.get(onEvent);
  if (known !== undefined) return known;
  const listener = (event: FloodgateEvent): void => {
    try {
      const handled: unknown = onEvent(event);
      if (isPromise(handled)) handled.then(undefined, listenerFailed);
    } catch (error) {
      listenerFailed(error);
    }
  };
  wrappers.set(onEvent, listener);
  wrappers.set(listener, listener);
  if (ignoringAllowed.has(onEvent)) ignoringAllowed.add(listener);
  return listener;
}

/** The listeners, and their wrappers, that ignore the events of requests that all limits allow. */
const ignoringAllowed = new WeakSet<EventListener>();
/** Whether there is one. Most processes have none. */
let hasIgnoring = false;

/**
 * Marks a listener that ignores the events of requests that all limits allow: middlewares make none for it while nobody else listens. Mark
 * it before its first use.
 */
export function ignoresAllowed(onEvent: EventListener): EventListener {
  ignoringAllowed.add(onEvent);
  hasIgnoring = true;
  return onEvent;
}

/** False for a listener that `ignoresAllowed` has marked, while nobody observes. */
export function hearsAllowed(listener: EventListener): boolean {
  return !hasIgnoring || !ignoringAllowed.has(listener);
}

function listenerFailed(error: unknown): void {
  warnOnce("onEvent", `a listener has failed. Requests are not affected, and further failures are not logged. ${reasonOf(error).why}`);
}

/** Each call of `observe`, with its listener. */
const observers = new Set<{ readonly listener: EventListener }>();
/** The listeners of these calls, once each. */
let observing: ReadonlySet<EventListener> = new Set();
/** `tell` tells all observers. Undefined while nobody observes: a decision checks nothing else. */
export const observation: { tell: EventListener | undefined } = { tell: undefined };
/** The functions that tell one listener and all observers. Made once for each listener. */
const joined = new WeakMap<EventListener, EventListener>();

/**
 * Listens to all events of this process: of all limiters, middlewares, stores and sources of rules, made before or after. An event that
 * several `onEvent` listeners get (of a breaker or a source) arrives once. Warnings and outages are still logged on the console if there is
 * no `onEvent`. A listener that throws or rejects fails no request.
 *
 *     const stop = observe((event) => { if (event.type === "limited") console.log(event.name, event.key); });
 *
 * @returns a function that stops it.
 * @throws FloodgateError unless it is given a function.
 */
export function observe(listener: EventListener): () => void {
  if (typeof listener !== "function") {
    throw invalidOption(`observe takes a function, but was given ${shown(listener)}. Write observe((event) => console.log(event)).`);
  }
  const observer = { listener: listenerOf(listener) };
  observers.add(observer);
  updateObservers();
  return () => {
    observers.delete(observer);
    updateObservers();
  };
}

function updateObservers(): void {
  const all = new Set([...observers].map(({ listener }) => listener));
  observing = all;
  const [first] = all;
  const tellEach = (event: FloodgateEvent): void => {
    for (const listener of all) listener(event);
  };
  observation.tell = all.size > 1 ? tellEach : first;
}

/**
 * Returns a function that tells an event to the listener of one limiter, middleware or store, and to the observers of the process.
 * Undefined if nobody listens, so that no event is made: `activeListener(onEvent)?.({ type: ... })`.
 * @param onEvent a wrapper of `listenerOf`.
 */
export function activeListener(onEvent?: EventListener): EventListener | undefined {
  if (observation.tell === undefined || onEvent === undefined) return onEvent ?? observation.tell;
  let both = joined.get(onEvent);
  if (both === undefined) {
    both = (event) => {
      // A listener that is an observer too hears it once.
      if (!observing.has(onEvent)) onEvent(event);
      observation.tell?.(event);
    };
    joined.set(onEvent, both);
  }
  return both;
}

/** Tells several listeners and all observers, each of them once. For events that limiters or middlewares share. */
export function tellAll<Event extends FloodgateEvent>(listeners: Iterable<(event: Event) => void>, event: Event): void {
  const wrapped = [...listeners].map((listener) => listenerOf(listener as EventListener));
  for (const listener of new Set([...wrapped, ...observing])) listener(event);
}

/** Reports a probable mistake. @param name the rule or limiter that it is about: each mistake of each is reported once. Default: none. */
export type Warn = (code: WarningCode, message: string, name?: string) => void;

/** Makes the function that warns a limiter's or middleware's observers, and its listener, else the console, once per process. */
export function warner(onEvent: EventListener | undefined): Warn {
  const warned = new Set<string>();
  return (code, message, name = "") => {
    const subject = `${code} ${name}`;
    if (warned.has(subject)) return;
    warned.add(subject);
    if (onEvent === undefined) warnOnce(code, message, subject);
    activeListener(onEvent)?.({ type: "warning", code, message });
  };
}
