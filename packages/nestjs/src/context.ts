import { type HeaderTarget, type NodeResponse, nodeHeader, type RequestReader } from "@floodgate/core/adapter";
import { expressReader } from "@floodgate/express";
import { fastifyReader } from "@floodgate/fastify";
import type { ExecutionContext } from "@nestjs/common";

// biome-ignore lint/suspicious/noExplicitAny: of any platform and transport
type Any = any;

const addressOf = (request: Any): string | undefined => (request?.socket ?? request?._socket)?.remoteAddress;

/** Reads requests of Node, such as that of a WebSocket, and contexts without a request. */
const nodeReader: RequestReader<Any> = {
  method: () => "GET",
  path: () => "/",
  header: (request, name) => (request?.headers === undefined ? undefined : nodeHeader(request, name)),
  remoteAddress: addressOf,
  clientIp: addressOf,
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

/** Which reader knows a request: that of Express, of Fastify, or of Node. */
function read<T>(context: ExecutionContext, ask: (reader: RequestReader<Any>, request: Any) => T): T {
  const request = requestOf(context);
  if (request?.raw !== undefined && request.server !== undefined) return ask(fastifyReader, request);
  return ask(typeof request?.app?.get === "function" ? expressReader : nodeReader, request);
}

/** Each message and each field of a GraphQL operation is counted, so it is its arguments, which are the same for all guards. */
export const identityOf = (context: ExecutionContext): object => (context.getType() === "http" ? requestOf(context) : context.getArgs());

/** Reads the contexts in which Nest calls a handler. */
export const nestReader: RequestReader<ExecutionContext> = {
  identity: identityOf,
  app: (context) => read(context, (reader, request) => reader.app?.(request)),
  method: (context) => read(context, (reader, request) => reader.method(request)),
  path: (context) => read(context, (reader, request) => reader.path(request)),
  header: (context, name) => read(context, (reader, request) => reader.header(request, name)),
  remoteAddress: (context) => read(context, (reader, request) => reader.remoteAddress(request)),
  clientIp: (context) => read(context, (reader, request) => reader.clientIp(request)),
  trustsProxy: (context) => read(context, (reader, request) => reader.trustsProxy(request)),
  route: (context) =>
    (context.getType() === "http" ? read(context, (reader, request) => reader.route(request)) : undefined) ??
    `${context.getClass().name}.${context.getHandler().name}`,
};
