import { ipKey } from "../support/ip.js";

/** Separates the parts of a tuple's text: a comma without a backslash before it. */
const parts = /(?:\\.|[^\\,])+/gs;

/**
 * Shows enough of a key to recognise it, and not enough to use it: `203.0.113.x`, `2001:db8:x`, `us…42`. A tuple's parts are masked one by
 * one.
 */
export function maskKey(key: string): string {
  if (key === "global") return key;
  const [, tuple] = /^\((.*)\)$/s.exec(key) ?? [];
  if (tuple !== undefined) return `(${(tuple.match(parts) ?? []).map((part) => maskKey(part.replace(/\\(.)/gs, "$1"))).join(", ")})`;
  const [, word, rest] = /^(missing-key-ip:|secret:|\\#)(.*)$/s.exec(key) ?? [];
  if (word === "missing-key-ip:") return word + maskKey(rest ?? "");
  if (word !== undefined) return `${word === "secret:" ? word : "#"}${rest?.slice(0, 4)}…`;
  const [, network] = /^(\d{1,3}\.\d{1,3}\.\d{1,3})\.\d{1,3}$/.exec(key) ?? [];
  if (network !== undefined) return `${network}.x`;
  if (key.includes(":") && ipKey(key.replace(/\/\d+$/, ""), 128) !== undefined) return `${key.split(":").slice(0, 2).join(":")}:x`;
  const letters = Array.from(key);
  if (letters.length < 3) return "…";
  return letters.length < 6 ? `${letters[0]}…` : `${letters.slice(0, 2).join("")}…${letters.slice(-2).join("")}`;
}
