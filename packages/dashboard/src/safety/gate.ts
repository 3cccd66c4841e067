import { FloodgateError } from "@floodgate/core";
import { warnOnce } from "@floodgate/core/adapter";
import type { View } from "../routes/view.js";
import { whyNotLocal, whyProduction } from "./local.js";

/** Decides who sees the dashboard: whom `authorize` lets in, else only browsers on this machine, and nobody in production. */
export class Gate<Req> {
  readonly #authorize: ((request: Req) => unknown) | undefined;
  /** How the app writes the option: "(req) => req.user?.admin === true". */
  readonly #example: string;

  constructor(authorize: ((request: Req) => unknown) | undefined, example: string) {
    this.#authorize = authorize;
    this.#example = example;
  }

  /**
   * Whether a request may see the dashboard. What `authorize` throws goes to the app's error handling.
   * @throws FloodgateError `FLOODGATE_INVALID_ANSWER` if `authorize` answers neither true nor false.
   */
  async admits(view: View, request: Req): Promise<boolean> {
    if (this.#authorize !== undefined) return this.#isYes(await this.#authorize(request));
    const why = whyProduction() ?? whyNotLocal(view);
    if (why === undefined) return true;
    warnOnce(
      "FLOODGATE_DASHBOARD_CLOSED",
      `the dashboard has not answered a request, because ${why}. Without \`authorize\` it answers browsers on this machine only, and nobody in production. Write dashboard({ authorize: ${this.#example} }).`,
    );
    return false;
  }

  #isYes(answer: unknown): boolean {
    if (typeof answer === "boolean") return answer;
    if (answer === undefined || answer === null) return false;
    throw new FloodgateError(
      "FLOODGATE_INVALID_ANSWER",
      `dashboard: \`authorize\` must answer true or false, but answered a ${typeof answer}. Write authorize: ${this.#example}.`,
    );
  }
}
