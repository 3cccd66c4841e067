import type { Problem } from "../contract.js";
import { headersFor } from "../safety/headers.js";
import type { Answer } from "./view.js";

const headers = headersFor("application/json; charset=utf-8");

export function jsonAnswer(value: unknown, status = 200): Answer {
  return { status, headers, body: JSON.stringify(value) };
}

export class Refusal extends Error {
  readonly #status: number;
  readonly #code: string;
  readonly #headers: Answer["headers"];

  constructor(status: number, code: string, message: string, more: Answer["headers"] = []) {
    super(message);
    this.#status = status;
    this.#code = code;
    this.#headers = more;
  }

  answer(): Answer {
    const problem: Problem = { error: { code: this.#code, message: this.message } };
    return { status: this.#status, headers: [...headers, ...this.#headers], body: JSON.stringify(problem) };
  }
}
