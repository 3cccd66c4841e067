import { Agent, type IncomingHttpHeaders, request } from "node:http";
import fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import { files, targets } from "./grammar.js";
import { ruleNames, type Server, Servers } from "./servers.js";

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Requests many targets at the same time, and returns the answers in their order; undefined if the server cut the connection. */
async function askAll(
  port: number,
  all: readonly string[],
  headers?: (target: string) => Record<string, string>,
): Promise<(Answer | undefined)[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  const ask = (path: string): Promise<Answer | undefined> =>
    new Promise((resolve) => {
      const options = headers === undefined ? { path } : { path: "/ask/generic", headers: headers(path) };
      const sent = request({ host: "127.0.0.1", port, agent, ...options }, (response) => {
        let body = "";
        response.on("data", (chunk) => {
          body += chunk;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }));
        response.on("error", () => resolve(undefined));
      });
      sent.on("error", () => resolve(undefined)).end();
    });
  const answers: (Answer | undefined)[] = [];
  for (let i = 0; i < all.length; i += 64) answers.push(...(await Promise.all(all.slice(i, i + 64).map(ask))));
  agent.destroy();
  return answers;
}

/** Whether a rule of the file counted the request, below a mount path or not. */
function isCounted(file: string, headers: IncomingHttpHeaders): boolean {
  const limits = `${headers["ratelimit"]}`;
  return ruleNames(file).some((name) => limits.includes(name));
}

/** Sends targets of the grammar to all servers: whoever gets a file must have been counted by its rule. */
export function describePaths(runs: number, seed: number): void {
  const servers = new Servers();
  afterAll(() => servers.stop());
  const all = [...new Set(fc.sample(targets, { numRuns: runs, seed }))];

  const judge = async (list: readonly Server[]): Promise<void> => {
    for (const { name, port } of list) {
      const answers = await askAll(port, all);
      let served = 0;
      const uncounted: string[] = [];
      answers.forEach((answer, i) => {
        if (answer?.status !== 200 || !files.includes(answer.body)) return;
        served++;
        if (!isCounted(answer.body, answer.headers)) uncounted.push(all[i] as string);
      });
      console.log(`${name}: ${all.length} URLs, ${served} got a file, ${uncounted.length} of them uncounted`);
      expect(uncounted, name).toEqual([]);
      expect(served, name).toBeGreaterThan(all.length / 50);
    }
  };

  it(`counts each of ${all.length} URLs by which an app's router or static files give a ruled file (seed ${seed})`, async () => {
    await judge(await servers.apps());
  });

  it(`counts each of ${all.length} URLs by which a server behind the gateway gives a ruled file (seed ${seed})`, async () => {
    await judge(await servers.upstreams());
  });

  it("lets no ambiguous path through the gateway by default, and tells the decision server's client the same as its option says", async () => {
    const [rejecting, counting] = [await servers.rejecting(), await servers.decisions()];
    const answers = await askAll(rejecting.port, all);
    const asked = all.filter((target) => !/[^\x21-\x7e]/.test(target));
    const decided = await askAll(counting, asked, (target) => ({
      "x-forwarded-method": "GET",
      "x-forwarded-uri": target,
      "x-forwarded-for": "192.0.2.1",
    }));
    const rejected = answers.filter((answer) => answer?.headers["content-type"] === "application/problem+json");
    expect(rejected.length).toBeGreaterThan(all.length / 10);
    for (const [i, answer] of answers.entries()) {
      if (answer?.status !== 200 || !files.includes(answer.body)) continue;
      expect(isCounted(answer.body, answer.headers), all[i]).toBe(true);
      // What is let through has no dot segment and no backslash in any spelling.
      const path = (all[i] as string).replace(/[?#].*$/s, "").replace(/^http:\/\/h/, "");
      expect(/\\|%5c|(?:^|\/|%2f)(?:\.|%2e){1,2}(?:\/|%2f|;|$)/i.test(path), all[i]).toBe(false);
      const decision = decided[asked.indexOf(all[i] as string)];
      if (decision !== undefined) expect(isCounted(answer.body, decision.headers), all[i]).toBe(true);
    }
  });
}
