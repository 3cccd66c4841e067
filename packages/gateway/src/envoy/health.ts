import {
  type handleServerStreamingCall,
  type handleUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  status,
} from "@grpc/grpc-js";
import { codecOf } from "./messages.js";

/** `grpc.health.v1.Health`, which Envoy's `grpc_health_check` asks. */

const healthStatus = { serving: 1, notServing: 2, serviceUnknown: 3 } as const;
type HealthStatus = (typeof healthStatus)[keyof typeof healthStatus];

interface HealthRequest {
  readonly service: string;
}

interface HealthResponse {
  readonly status: HealthStatus;
}

const codec = codecOf("HealthCheckRequest", "HealthCheckResponse");

export const healthService: ServiceDefinition = {
  Check: { path: "/grpc.health.v1.Health/Check", requestStream: false, responseStream: false, ...codec },
  Watch: { path: "/grpc.health.v1.Health/Watch", requestStream: false, responseStream: true, ...codec },
};

/** Answers health checks. */
interface Health {
  readonly check: handleUnaryCall<HealthRequest, HealthResponse>;
  readonly watch: handleServerStreamingCall<HealthRequest, HealthResponse>;
  /** Ends the streams that watch. */
  close(): void;
}

/** @param name a service that has the health of the server as a whole, which is called "". */
export function healthOf(name: string, isServing: () => boolean): Health {
  const watchers = new Map<ServerWritableStream<HealthRequest, HealthResponse>, HealthStatus>();
  const isKnown = (service: string): boolean => service === "" || service === name;
  const statusNow = (): HealthStatus => (isServing() ? healthStatus.serving : healthStatus.notServing);
  const tellWatchers = (): void => {
    for (const [call, known] of watchers) {
      const status = statusNow();
      if (known === status) continue;
      watchers.set(call, status);
      call.write({ status });
    }
  };
  const timer = setInterval(tellWatchers, 250).unref();
  return {
    check({ request }, answer) {
      if (isKnown(request.service)) answer(null, { status: statusNow() });
      else answer({ code: status.NOT_FOUND, details: "unknown service" });
    },
    watch(call) {
      const first = isKnown(call.request.service) ? statusNow() : healthStatus.serviceUnknown;
      if (first !== healthStatus.serviceUnknown) {
        watchers.set(call, first);
        call.on("cancelled", () => watchers.delete(call));
      }
      call.write({ status: first });
    },
    close() {
      clearInterval(timer);
      tellWatchers();
      for (const call of watchers.keys()) call.end();
      watchers.clear();
    },
  };
}
