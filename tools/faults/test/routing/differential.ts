import { EventEmitter } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { IncomingMessage, type RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fixedWindow } from "@floodgate/core";
import { express4, express5 } from "./express.js";
import { fastify } from "./fastify.js";
import type { Framework, Limit } from "./framework.js";
import { hono } from "./hono.js";
import { koa, koaRouter } from "./koa.js";
import { node } from "./node.js";
import { file, type Handler, type Level, limitedHandlers, randomPlan } from "./plan.js";
import { Random } from "./random.js";
import { mutated, plainPath } from "./targets.js";

const frameworks: readonly Framework[] = [express4, express5, koa, koaRouter, ...hono, ...fastify, ...node];

/** Targets per app. */
const targetsOfAnApp = 100;

/** The results. */
export interface Tally {
  targets: number;
  /** The targets that reached at least one handler behind the limit. */
  reached: number;
}

/** A request as a server passes it to an app. The target is not changed, even if only HTTP/2 allows it. */
interface Sent {
  readonly method: string;
  readonly target: string;
}

const policy = fixedWindow({ limit: 1_000_000_000, window: "365d" });

/**
 * Sends random targets to random apps. A request that reaches a handler must be counted under that handler's rule; a request for a
 * plain path must be counted under no other rule.
 * @throws Error with the app, the rule and the target of the first wrongly counted request.
 */
export async function tryTargets(count: number, seed: number): Promise<Record<string, Tally>> {
  const random = new Random(seed);
  const root = mkdtempSync(join(tmpdir(), "floodgate-routing-"));
  mkdirSync(dirname(join(root, file)), { recursive: true });
  writeFileSync(join(root, file), "big");
  const tallies: Record<string, Tally> = {};
  try {
    for (let tried = 0, turn = 0; tried < count; turn++) {
      const framework = frameworks[turn % frameworks.length] as Framework;
      const plan = randomPlan(random, framework.abilities);
      if (framework.otherwise?.test(JSON.stringify(plan))) continue;
      const trial = new Trial(framework, plan, root);
      if (trial.listener === undefined) continue;
      await trial.visit(trial.listener);
      tallies[framework.name] ??= { targets: 0, reached: 0 };
      const tally = tallies[framework.name] as Tally;
      for (let i = 0; i < targetsOfAnApp && tried < count; i++, tried++) {
        const sent = randomRequest(random, framework, plan);
        const problem = await trial.problemOf(trial.listener, sent);
        if (problem !== undefined) throw new Error(`Seed ${seed}, ${framework.name}: ${problem}\nThe app: ${JSON.stringify(plan)}`);
        tally.targets++;
        if (trial.reached.size > 0) tally.reached++;
      }
    }
  } finally {
    rmSync(root, { recursive: true });
  }
  return tallies;
}

function randomRequest(random: Random, { http2 }: Framework, plan: Level): Sent {
  const method = random.from(http2 ? ["GET", "POST", "GET", "POST", "get", "post", "PoSt", "HEAD"] : ["GET", "POST", "HEAD"]);
  const path = plainPath(random, plan);
  return { method, target: random.below(10) < 3 ? path : mutated(random, path) };
}

/** One app, and the handlers that a request reaches in it. */
class Trial {
  readonly listener: RequestListener | undefined;
  /** Handlers behind the limit. */
  readonly reached = new Set<string>();
  readonly #counted = new Set<string>();
  readonly #handlers: ReadonlyMap<string, Handler>;
  readonly #isRewriting: boolean;
  #isFirst = true;

  constructor(framework: Framework, plan: Level, root: string) {
    const handlers = limitedHandlers(plan);
    this.#handlers = new Map(handlers.map((handler) => [handler.name, handler]));
    this.#isRewriting = JSON.stringify(plan).includes('"rewrites":[{') || framework.overcounts === true;
    const key = (name: string) => (): string => {
      this.#counted.add(name);
      return name;
    };
    const limit: Limit = {
      rules: [
        { name: "every", policy, key: key("every") },
        ...handlers.map(({ name, path, method }) => ({
          name,
          policy,
          key: key(name),
          match: { path, ...(method === "ALL" ? {} : { method }) },
        })),
      ],
    };
    const reach = (name: string): void => {
      if (this.#handlers.has(name)) this.reached.add(name);
    };
    this.listener = framework.build(plan, { limit, reach, root });
  }

  /** Requests each handler's plain path first: only then a Koa app reveals that a mount path ends in a slash. */
  async visit(listener: RequestListener): Promise<void> {
    for (const { path, method } of this.#handlers.values()) {
      await exchange(listener, { method: method === "ALL" ? "GET" : method, target: path.replaceAll(/:\w+|\*/g, "1") });
    }
    this.#isFirst = true;
  }

  /** What is wrong with a request's counts, if anything. */
  async problemOf(listener: RequestListener, sent: Sent): Promise<string | undefined> {
    this.reached.clear();
    this.#counted.clear();
    await exchange(listener, sent);
    const request = `${sent.method} ${JSON.stringify(sent.target)}`;
    for (const name of this.reached) {
      if (!this.#counted.has(name)) return `${request} reached ${this.#shown(name)} uncounted`;
    }
    // The first request may be counted under more rules, because the mounts are not known yet.
    const isFirst = this.#isFirst;
    if (this.#counted.has("every")) this.#isFirst = false;
    if (isFirst || this.#isRewriting || !this.#counted.has("every") || !/^(?:\/[a-z\d]+)+$/i.test(sent.target)) return undefined;
    for (const name of this.#counted) {
      const handler = this.#handlers.get(name);
      if (handler !== undefined && !fits(handler, sent)) return `${request} was counted for ${this.#shown(name)}, which is not for it`;
    }
    return undefined;
  }

  #shown(name: string): string {
    return `${name} (rule ${JSON.stringify(this.#handlers.get(name)?.path)})`;
  }
}

/** Whether a rule matches a plain path, by an independent model. */
function fits({ path, method }: Handler, sent: Sent): boolean {
  const segments = path.split("/").filter((segment) => segment !== "");
  const pattern = segments.map((segment) => (segment === "*" ? "(/.*)?" : `/${segment.startsWith(":") ? "[^/]+" : literal(segment)}`));
  const isMethod = method === "ALL" || method === sent.method.toUpperCase() || (method === "GET" && sent.method.toUpperCase() === "HEAD");
  return isMethod && new RegExp(`^${pattern.join("")}$`, "i").test(sent.target);
}

/** The pattern of a segment that is text. Only letters and digits match, because plain paths have no others. */
function literal(segment: string): string {
  const text = segment.replaceAll(/%[4-7][\da-f]/gi, decodeURIComponent);
  return /^[a-z\d]+$/i.test(text) ? text : "(?!)";
}

/** Sends a request to an app without a connection, and waits for the response. */
function exchange(listener: RequestListener, { method, target }: Sent): Promise<number> {
  const socket = Object.assign(new EventEmitter(), { remoteAddress: "127.0.0.1", encrypted: false, destroy: () => undefined });
  const request = new IncomingMessage(socket as unknown as Socket);
  request.method = method;
  request.url = target;
  request.httpVersion = "1.1";
  request.headers = { host: "h" };
  request.rawHeaders = ["host", "h"];
  request.complete = true;
  request.push(null);
  const response = new ServerResponse(request);
  return new Promise((resolve) => {
    response.end = (() => {
      resolve(response.statusCode);
      return response;
    }) as never;
    listener(request, response);
  });
}
