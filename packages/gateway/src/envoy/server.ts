import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { reasonOf } from "@floodgate/core/adapter";
import * as grpc from "@grpc/grpc-js";
import { isUnix, type ListenAddress, parseAddress } from "../config/address.js";
import type { Settings } from "../config/settings.js";
import { sampledLog } from "../log/log.js";
import { type RunningServer, removeStale, unlistenable } from "../service/listen.js";
import { withFileErrors } from "../service/secrets.js";
import type { Service } from "../service/service.js";
import type { Trust } from "../service/trust.js";
import { descriptorRequests } from "./descriptor-request.js";
import { healthOf, healthService } from "./health.js";
import { codecOf, type RequestMessage } from "./messages.js";
import { responseOf } from "./response.js";

const serviceName = "envoy.service.ratelimit.v3.RateLimitService";

const rateLimitService: grpc.ServiceDefinition = {
  ShouldRateLimit: {
    path: `/${serviceName}/ShouldRateLimit`,
    requestStream: false,
    responseStream: false,
    ...codecOf("RateLimitRequest", "RateLimitResponse"),
  },
};

/** A request has an address, a path and some headers. Envoy sends no longer ones. */
const maxBytes = 2 ** 20;

/** Starts Envoy's rate limit service, if the setting `rls` says where. */
export async function startRls(service: Service): Promise<RunningServer | undefined> {
  const { settings } = service;
  if (settings.rls === undefined) return undefined;
  const credentials = credentialsOf(settings);
  const server = new grpc.Server({ "grpc.max_receive_message_length": maxBytes });
  const health = healthOf(serviceName, () => !service.draining && service.rules.live !== undefined);
  const trusts = peerCheck(service.trust, isUnix(settings.rls), settings.rlsClientCaFile !== undefined);
  server.addService(rateLimitService, { ShouldRateLimit: shouldRateLimit(service, trusts) });
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

function shouldRateLimit(service: Service, trusts: (peer: string) => boolean): grpc.handleUnaryCall<RequestMessage, object> {
  const { log, limit } = service;
  const write = sampledLog(log);
  return async (call, answer) => {
    const refused = (code: grpc.status, reason: string): void => {
      write("warn", reason, `Envoy's rate limit service refused a call: ${reason}`);
      answer({ code, details: reason });
    };
    try {
      if (!trusts(call.getPeer())) {
        return refused(grpc.status.PERMISSION_DENIED, `its peer ${call.getPeer()} is not in \`trustedPeers\`.`);
      }
      // Nobody waits for the answer, so nothing is charged.
      if (isLate(call)) return answer({ code: grpc.status.DEADLINE_EXCEEDED, details: "The deadline was over before the call was read." });
      const requests = descriptorRequests(call.request);
      if (typeof requests === "string") return refused(grpc.status.INVALID_ARGUMENT, requests);
      const decided = await limit.decideDescriptors(requests);
      // The store failed, and `onStoreError` is "deny". With `failure_mode_deny`, Envoy rejects a request if it gets an error.
      if (decided.outcome.status === 503) answer({ code: grpc.status.UNAVAILABLE, details: "The limits cannot be checked at the moment." });
      else answer(null, responseOf(decided));
    } catch (error) {
      const { code = "an error", why } = reasonOf(error);
      write("error", why, `Envoy's rate limit service could not decide a call: ${why}`);
      answer({ code: grpc.status.INTERNAL, details: `The call could not be decided: ${code}.` });
    }
  };
}

function isLate(call: grpc.ServerUnaryCall<RequestMessage, object>): boolean {
  const deadline = call.getDeadline();
  return call.cancelled || (deadline instanceof Date ? deadline.getTime() : deadline) <= Date.now();
}

/** Listens. Returns the address with the real port. */
async function bind(server: grpc.Server, address: string, credentials: grpc.ServerCredentials): Promise<string> {
  const parsed = parseAddress(address) as ListenAddress;
  if ("path" in parsed) await removeStale(parsed.path, address, "rls");
  const host = "path" in parsed ? undefined : parsed.host.includes(":") ? `[${parsed.host}]` : parsed.host;
  const target = "path" in parsed ? address : `${host}:${parsed.port}`;
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(target, credentials, (error, port) => (error === null ? resolve(port) : reject(error)));
  }).catch((error: grpc.ServiceError) => {
    throw unlistenable(address, "rls", error.message, error);
  });
  return host === undefined ? address : `${host}:${port}`;
}

/**
 * TLS if the settings name a certificate, and certificates of clients if they name who signs those.
 * @throws FloodgateError if a file cannot be read, or is no certificate or key.
 */
function credentialsOf({ rlsCertFile, rlsKeyFile, rlsClientCaFile }: Settings): grpc.ServerCredentials {
  if (rlsCertFile === undefined || rlsKeyFile === undefined) return grpc.ServerCredentials.createInsecure();
  const cert = read("rlsCertFile", rlsCertFile);
  const key = read("rlsKeyFile", rlsKeyFile);
  const ca = rlsClientCaFile === undefined ? null : read("rlsClientCaFile", rlsClientCaFile);
  withFileErrors("rlsCertFile", rlsCertFile, () => new X509Certificate(cert));
  withFileErrors("rlsKeyFile", rlsKeyFile, () => createSecureContext({ cert, key }));
  if (ca !== null) withFileErrors("rlsClientCaFile", rlsClientCaFile as string, () => new X509Certificate(ca));
  return grpc.ServerCredentials.createSsl(ca, [{ cert_chain: cert, private_key: key }], ca !== null);
}

function read(setting: keyof Settings, path: string): Buffer {
  return withFileErrors(setting, path, () => readFileSync(path));
}

/**
 * Makes a function that says whether a peer may ask. Everything in a request is believed, so only trusted peers may. The function takes a peer as
 * grpc-js names it: `127.0.0.1:5000`, `::1:5000`; `unknown` for a Unix socket, and for a connection that was reset.
 * @param isUnix whether the server listens on a Unix socket.
 * @param hasCertificates whether TLS has checked the certificate of each peer: then all are trusted.
 */
export function peerCheck(trust: Trust, isUnix: boolean, hasCertificates: boolean): (peer: string) => boolean {
  // Envoy keeps its connections, so the last peer is remembered.
  let last = "";
  let trustsLast = hasCertificates;
  return (peer) => {
    if (peer !== last && !hasCertificates) {
      last = peer;
      trustsLast = trust.peer(/^(.+):\d+$/.exec(peer)?.[1], isUnix)?.isTrusted === true;
    }
    return trustsLast;
  };
}
