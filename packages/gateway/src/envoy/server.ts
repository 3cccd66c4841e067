import { FloodgateError } from "@floodgate/core";
import {
  type handleUnaryCall,
  Server,
  type ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { isUnix, parseAddress } from "../config/address.js";
import { SampledLog } from "../log/sampled-log.js";
import { removeStale } from "../service/listen.js";
import type { Part } from "../service/part.js";
import type { Service } from "../service/service.js";
import { credentialsOf } from "./credentials.js";
import { descriptorRequests } from "./descriptor-request.js";
import { Health, healthService } from "./health.js";
import { decodeRequest, encodeResponse, type RequestMessage, type ResponseMessage } from "./messages.js";
import { Peers } from "./peers.js";
import { responseOf } from "./response.js";

const serviceName = "envoy.service.ratelimit.v3.RateLimitService";

const rateLimitService: ServiceDefinition = {
  ShouldRateLimit: {
    path: `/${serviceName}/ShouldRateLimit`,
    requestStream: false,
    responseStream: false,
    requestDeserialize: decodeRequest,
    responseSerialize: encodeResponse,
    // Only clients use these.
    requestSerialize: unused,
    responseDeserialize: unused,
  },
};

function unused(): never {
  throw new Error("not a client");
}

/** A request has an address, a path and some headers. Envoy sends no longer ones. */
const mostBytes = 2 ** 20;

/** Starts Envoy's rate limit service, if the setting `rls` says where. */
export async function startRls(service: Service): Promise<Part | undefined> {
  const { settings } = service;
  if (settings.rls === undefined) return undefined;
  const credentials = credentialsOf(settings);
  const server = new Server({ "grpc.max_receive_message_length": mostBytes });
  const health = new Health([serviceName], () => !service.draining && service.rules !== undefined);
  const peers = new Peers(service.trust, isUnix(settings.rls), settings.rlsClientCaFile !== undefined);
  server.addService(rateLimitService, { ShouldRateLimit: shouldRateLimit(service, peers) });
  server.addService(healthService, { Check: health.check, Watch: health.watch });
  const address = await bind(server, settings.rls, credentials).catch((error) => {
    health.close();
    throw error;
  });
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      health.close();
      const force = setTimeout(() => server.forceShutdown(), settings.closeMs);
      server.tryShutdown(() => {
        clearTimeout(force);
        resolve();
      });
    });
  return { name: "rls", address, url: isUnix(address) ? address : `grpc://${address}`, close };
}

function shouldRateLimit(service: Service, peers: Peers): handleUnaryCall<RequestMessage, ResponseMessage> {
  const { log, limit } = service;
  const sampled = new SampledLog(log);
  return (call, answer) => {
    const refused = (code: status, reason: string): void => {
      sampled.write("warn", reason, `Envoy's rate limit service refused a call: ${reason}`);
      answer({ code, details: reason });
    };
    if (!peers.trusts(call.getPeer())) {
      return refused(status.PERMISSION_DENIED, `its peer ${call.getPeer()} is not in \`trustedPeers\`.`);
    }
    // Nobody waits for the answer, so nothing is charged.
    if (isLate(call)) return answer({ code: status.DEADLINE_EXCEEDED, details: "The deadline was over before the call was read." });
    const requests = descriptorRequests(call.request);
    if (typeof requests === "string") return refused(status.INVALID_ARGUMENT, requests);
    const failed = (error: unknown): void => {
      const code = error instanceof FloodgateError ? error.code : "an error";
      const reason = error instanceof Error ? error.message : code;
      sampled.write("error", reason, `Envoy's rate limit service could not decide a call: ${reason}`);
      answer({ code: status.INTERNAL, details: `The call could not be decided: ${code}.` });
    };
    const decided = (outcome: Parameters<typeof responseOf>[0]): void => {
      // The store failed, and `onStoreError` is "deny". With `failure_mode_deny`, Envoy rejects a request if it gets an error.
      if (outcome.outcome.status === 503) answer({ code: status.UNAVAILABLE, details: "The limits cannot be checked at the moment." });
      else answer(null, responseOf(outcome));
    };
    try {
      const outcome = limit.decideDescriptors(requests);
      if ("then" in outcome) outcome.then(decided).then(undefined, failed);
      else decided(outcome);
    } catch (error) {
      failed(error);
    }
  };
}

function isLate(call: ServerUnaryCall<RequestMessage, ResponseMessage>): boolean {
  const deadline = call.getDeadline();
  return call.cancelled || (deadline instanceof Date ? deadline.getTime() : deadline) <= Date.now();
}

/** Listens. Returns the address with the real port. */
async function bind(server: Server, address: string, credentials: ServerCredentials): Promise<string> {
  const parsed = parseAddress(address) as NonNullable<ReturnType<typeof parseAddress>>;
  if ("path" in parsed) await removeStale(parsed.path, address, "rls");
  const host = "path" in parsed ? undefined : parsed.host.includes(":") ? `[${parsed.host}]` : parsed.host;
  const target = "path" in parsed ? address : `${host}:${parsed.port}`;
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(target, credentials, (error, port) => (error === null ? resolve(port) : reject(error)));
  }).catch((error: ServiceError) => {
    throw new FloodgateError("FLOODGATE_CANNOT_LISTEN", `\`rls\`: cannot listen on ${address}: ${error.message}.`, { cause: error });
  });
  return host === undefined ? address : `${host}:${port}`;
}
