import { printable } from "./errors.js";

/** Every runtime has one; typed here because core has no types of any of them. */
declare const console: { warn(message: string): void };

const warned = new Set<string>();

/**
 * Tells the console once in a process, for want of a listener.
 * @param subject what is told once: the code, or the code of one rule.
 */
export function warnOnce(code: string, message: string, subject: string = code): void {
  if (warned.has(subject)) return;
  warned.add(subject);
  warn(code, message);
}

/** Tells the console. The caller sees to it that this happens rarely. */
export function warn(code: string, message: string): void {
  console.warn(printable(`[floodgate] ${code}: ${message}`));
}
