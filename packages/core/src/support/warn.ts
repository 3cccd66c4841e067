import { printable } from "./errors.js";

/** A global of every runtime. Declared here, because core is compiled without the types of any runtime. */
declare const console: { warn(message: string): void };

const warned = new Set<string>();

/**
 * Logs a warning once per process. Used if there is no listener.
 * @param subject what is logged once: the code, or the code of one rule.
 */
export function warnOnce(code: string, message: string, subject: string = code): void {
  if (warned.has(subject)) return;
  warned.add(subject);
  warn(code, message);
}

/** Logs a warning. The caller limits how often. */
export function warn(code: string, message: string): void {
  console.warn(printable(`[floodgate] ${code}: ${message}`));
}
