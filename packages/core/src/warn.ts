/** Every runtime has one; typed here because core has no types of any of them. */
declare const console: { warn(message: string): void };

const warned = new Set<string>();

/** Tells the console once in a process, for want of a listener. */
export function warnOnce(code: string, message: string): void {
  if (warned.has(code)) return;
  warned.add(code);
  console.warn(`[floodgate] ${code}: ${message}`);
}
