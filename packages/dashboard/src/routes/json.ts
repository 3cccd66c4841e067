import type { Problem } from "../contract.js";
import { headersFor } from "../safety/headers.js";
import type { Reply, View } from "./view.js";

const headers = headersFor("application/json; charset=utf-8");

export function jsonReply(value: unknown, status = 200): Reply {
  return { status, headers, body: JSON.stringify(value) };
}

export class Refusal extends Error {
  readonly reply: Reply;

  constructor(status: number, code: string, message: string, more: Reply["headers"] = []) {
    super(message);
    const problem: Problem = { error: { code, message } };
    this.reply = { ...jsonReply(problem, status), headers: [...headers, ...more] };
  }
}

/** A key has at most a few hundred characters. */
const maxBytes = 16_384;

/** The JSON object in the body of a POST. */
export type JsonBody = Record<string, unknown>;

/**
 * The body of a POST that the page itself has sent.
 * @throws Refusal
 */
export async function bodyOf(view: View): Promise<JsonBody> {
  // Pages of other sites cannot set this header. Browsers send it over HTTPS and to localhost.
  if (view.header("sec-fetch-site") !== "same-origin") {
    throw new Refusal(
      403,
      "forbidden",
      "This needs the header Sec-Fetch-Site: same-origin. Browsers send it over HTTPS, and to localhost.",
    );
  }
  if (!/^application\/json\s*(?:;|$)/i.test(view.header("content-type") ?? "")) {
    throw new Refusal(415, "invalid", "The body must be JSON, with Content-Type: application/json.");
  }
  if (Number(view.header("content-length") ?? 0) > maxBytes) throw tooLarge();
  const body = await view.body(maxBytes);
  if (body === undefined) throw tooLarge();
  const value = "parsed" in body ? body.parsed : parse(body.text);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonBody;
  throw new Refusal(400, "invalid", "The body must be a JSON object.");
}

/** The longest text that a person would type. */
const longestText = 4000;

export const isText = (value: unknown): value is string => typeof value === "string" && value.length <= longestText;

export const isOptionalText = (value: unknown): value is string | undefined => value === undefined || isText(value);

export const invalidBody = (what: string): Refusal => new Refusal(400, "invalid", `Invalid body: ${what}.`);

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal(400, "invalid", "The body is not JSON.");
  }
}

function tooLarge(): Refusal {
  return new Refusal(413, "too-large", `The body has more than ${maxBytes} bytes.`);
}
