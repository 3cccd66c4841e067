import type { KeyName, RequestQuery } from "../contract.js";

/** What a person typed: a key as it is, or a list of its parts as JSON. */
export function keyOf(typed: string): KeyName {
  const text = typed.trim();
  if (!text.startsWith("[")) return { key: text };
  try {
    const parts: unknown = JSON.parse(text);
    if (Array.isArray(parts) && parts.length > 0 && parts.every((part) => typeof part === "string" || typeof part === "number")) {
      return { key: parts.map(String) };
    }
  } catch {
    // Not a list, so a key that begins with a bracket.
  }
  return { key: text };
}

/** The fields that describe a request. */
export type TypedRequest = Readonly<Record<"method" | "path" | "ip" | "plan" | "headers" | "keys", string>>;

export function queryOf({ method, path, ip, plan, headers, keys }: TypedRequest): RequestQuery {
  return {
    method,
    path: path.trim(),
    ...(ip.trim() !== "" && { ip: ip.trim() }),
    ...(plan.trim() !== "" && { plan: plan.trim() }),
    headers: pairsOf(headers, ":"),
    keys: pairsOf(keys, "="),
  };
}

/** The lines with a separator, by what is before it. */
function pairsOf(text: string, separator: string): Record<string, string> {
  const lines = text.split("\n").filter((line) => line.indexOf(separator) > 0);
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf(separator);
      return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    }),
  );
}
