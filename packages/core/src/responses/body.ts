import { FloodgateError, shown } from "../support/errors.js";

/** The body of a response. */
export interface Body {
  readonly text: string;
  readonly contentType: string;
}

/**
 * The body that an app answers every 429 with: a text, or an object as JSON. Its text is made once.
 * @throws FloodgateError `FLOODGATE_INVALID_OPTION` if it is neither, or an object that JSON cannot write;
 * `FLOODGATE_CONFLICTING_OPTIONS` beside `onLimited`.
 */
export function staticBody(where: string, options: { readonly body?: unknown; readonly onLimited?: unknown }): Body | undefined {
  const { body, onLimited } = options;
  if (body === undefined) return undefined;
  if (onLimited !== undefined) {
    throw new FloodgateError(
      "FLOODGATE_CONFLICTING_OPTIONS",
      `${where}: \`body\` and \`onLimited\` both answer a rejected request. Give one of the two.`,
      { at: ["body"] },
    );
  }
  if (typeof body === "string") return { text: body, contentType: "text/plain; charset=utf-8" };
  const text = isPlain(body) ? jsonOf(body) : undefined;
  if (text !== undefined) return { text, contentType: "application/json; charset=utf-8" };
  throw new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    `${where}: \`body\` must be a text, or an object that JSON can write, but was ${shown(body)}. Write body: "Slow down", or body: { error: "Too many requests" }.`,
    { at: ["body"] },
  );
}

/** Not a promise, a buffer or a stream, which JSON would write as something else. */
function isPlain(body: unknown): boolean {
  return Array.isArray(body) || Object.prototype.toString.call(body) === "[object Object]";
}

function jsonOf(body: unknown): string | undefined {
  try {
    return JSON.stringify(body);
  } catch {
    return undefined;
  }
}
