import { FloodgateError, shown } from "../support/errors.js";
import { importOf } from "../support/foreign-options.js";

type Shape = Readonly<Record<string, unknown>>;
type Kind = readonly [is: (value: Shape) => unknown, name: string, advice: string];

const adapter = (name: string): string => `Write ${importOf("rateLimit", `@floodgate/${name}`)}.`;

/** What frameworks pass to a middleware, each told by a property that no other has. */
const kinds: readonly Kind[] = [
  [({ req }) => has(req, "raw"), "a context of Hono", adapter("hono")],
  [({ app, req }) => has(app, "context") && req, "a context of Koa", adapter("koa")],
  [({ app, res }) => has(app, "get") && res, "a request of Express", adapter("express")],
  [({ raw, server }) => raw && server, "a request of Fastify", adapter("fastify")],
  [({ addHook, register }) => addHook && register, "an instance of Fastify", adapter("fastify")],
  [
    ({ headers, socket }) => headers && socket,
    "a request of Node, as connect, polka and @fastify/middie pass it",
    `${adapter("node")} In NestJS use @floodgate/nestjs.`,
  ],
  [({ arrayBuffer, headers }) => arrayBuffer && headers, "a Request of the Fetch API", adapter("fetch")],
];

function has(value: unknown, property: string): boolean {
  return typeof value === "object" || typeof value === "function" ? (value as Shape | null)?.[property] !== undefined : false;
}

function kindOf(value: unknown): Kind | undefined {
  return typeof value === "object" && value !== null ? kinds.find(([is]) => is(value as Shape)) : undefined;
}

/** The name of a framework's request; undefined for other values. */
export function requestName(value: unknown): string | undefined {
  return kindOf(value)?.[1];
}

/**
 * The error for a middleware that was given something else than the requests of its framework.
 * @param ours what it takes: `"a request of Express"`.
 */
export function foreignRequest(ours: string, request: unknown): FloodgateError {
  const [, name, advice] = kindOf(request) ?? [undefined, shown(request), `Mount it as your framework's middleware: app.use(limit).`];
  return new FloodgateError("FLOODGATE_FOREIGN_REQUEST", `This rateLimit takes ${ours}, but was given ${name}. ${advice}`);
}
