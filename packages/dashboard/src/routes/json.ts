import type { Problem } from "../contract.js";
import { headersFor } from "../safety/headers.js";
import type { Reply, View } from "./view.js";

const headers = headersFor("application/json; charset=utf-8");

export function jsonReply(value: unknown, status = 200): Reply {
  return { status, headers, body: JSON.stringify(value) };
}

export class Refusal extends Error {
  readonly #status: number;
  readonly #code: string;
  readonly #headers: Reply["headers"];

  constructor(status: number, code: string, message: string, more: Reply["headers"] = []) {
    super(message);
    this.#status = status;
    this.#code = code;
    this.#headers = more;
  }

  answer(): Reply {
    const problem: Problem = { error: { code: this.#code, message: this.message } };
    return { status: this.#status, headers: [...headers, ...this.#headers], body: JSON.stringify(problem) };
  }
}

/** A key has at most a few hundred characters. */
const mostBytes = 16_384;

/**
 * The JSON object in the body of a POST that the page itself has sent.
 * @throws Refusal
 */
export async function bodyOf(view: View): Promise<Record<string, unknown>> {
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
  if (Number(view.header("content-length") ?? 0) > mostBytes) throw tooLarge();
  const body = await view.body(mostBytes);
  if (body === undefined) throw tooLarge();
  const value = "parsed" in body ? body.parsed : parse(body.text);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new Refusal(400, "invalid", "The body must be a JSON object.");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal(400, "invalid", "The body is not JSON.");
  }
}

function tooLarge(): Refusal {
  return new Refusal(413, "too-large", `The body has more than ${mostBytes} bytes.`);
}
