import { type HeaderTarget, type NodeResponse, nodeReaderOf, type RequestReader } from "@floodgate/core/adapter";
import { expressReader } from "@floodgate/express";
import { fastifyReader } from "@floodgate/fastify";
import type { ExecutionContext } from "@nestjs/common";

// biome-ignore lint/suspicious/noExplicitAny: of any platform and transport
type Any = any;

/** Reads Node's request, such as that of a WebSocket. A context without a request reads like an empty one. */
const fromNode = nodeReaderOf((request: Any) => ({ headers: request?.headers ?? {}, socket: request?.socket ?? request?._socket ?? {} }));
const plainReader: RequestReader<Any> = {
  ...fromNode,
  path: () => "/",
  clientIp: fromNode.remoteAddress,
  trustsProxy: () => false,
  route: () => undefined,
};

/** The context of a GraphQL operation. */
const graphOf = (context: ExecutionContext): Any => (context.getType<string>() === "graphql" ? context.getArgByIndex(2) : undefined);

/** The request that a call came by. Socket.IO keeps that of a connection. */
function requestOf(context: ExecutionContext): Any {
  const type = context.getType<string>();
  if (type === "http") return context.getArgByIndex(0);
  if (type === "ws") return context.getArgByIndex(0)?.request ?? context.getArgByIndex(0);
  const graph = graphOf(context);
  return graph?.req ?? graph?.request ?? graph?.reply?.request ?? graph?.extra?.request;
}

/** Node's response, if the context has one. */
export function responseOf(context: ExecutionContext): (NodeResponse & HeaderTarget) | undefined {
  const graph = graphOf(context);
  const response =
    context.getType() === "http" ? context.getArgByIndex(1) : (graph?.res ?? graph?.reply ?? (graph && requestOf(context)?.res));
  return response?.raw ?? response;
}

/** Each message and each field of a GraphQL operation is counted, so it is its arguments, which are the same for all guards. */
export const identityOf = (context: ExecutionContext): object => (context.getType() === "http" ? requestOf(context) : context.getArgs());

/** The reader that knows a request: that of Express, of Fastify, or of Node. */
function readerOf(request: Any): RequestReader<Any> {
  if (request?.raw !== undefined && request.server !== undefined) return fastifyReader;
  return typeof request?.app?.get === "function" ? expressReader : plainReader;
}

/** Reads a request with its reader. */
function read<Name extends keyof RequestReader<Any>>(name: Name, context: ExecutionContext, ...more: unknown[]): Any {
  const request = requestOf(context);
  return (readerOf(request)[name] as Any)?.(request, ...more);
}

const delegated = ["app", "method", "path", "header", "remoteAddress", "clientIp", "trustsProxy", "hasLeft"] as const;
type Delegated = Pick<Required<RequestReader<ExecutionContext>>, (typeof delegated)[number]>;

/** Reads the contexts in which Nest calls a handler. */
export const nestReader: RequestReader<ExecutionContext> = {
  ...(Object.fromEntries(delegated.map((name) => [name, read.bind(undefined, name)])) as unknown as Delegated),
  identity: identityOf,
  route: (context) =>
    (context.getType() === "http" ? read("route", context) : undefined) ?? `${context.getClass().name}.${context.getHandler().name}`,
};
