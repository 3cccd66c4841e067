import * as grpc from "@grpc/grpc-js";
import { codecOf } from "./messages.js";

/** The statuses of `grpc.health.v1.Health`, which Envoy's `grpc_health_check` asks. */
const serving = 1;
const notServing = 2;
const serviceUnknown = 3;

interface HealthRequest {
  readonly service: string;
}

interface HealthResponse {
  readonly status: number;
}

const codec = codecOf("HealthCheckRequest", "HealthCheckResponse");

export const healthService: grpc.ServiceDefinition = {
  Check: { path: "/grpc.health.v1.Health/Check", requestStream: false, responseStream: false, ...codec },
  Watch: { path: "/grpc.health.v1.Health/Watch", requestStream: false, responseStream: true, ...codec },
};

/** Answers health checks. */
interface Health {
  readonly check: grpc.handleUnaryCall<HealthRequest, HealthResponse>;
  readonly watch: grpc.handleServerStreamingCall<HealthRequest, HealthResponse>;
  /** Ends the streams that watch. */
  close(): void;
}

/** @param name a service that has the health of the server as a whole, which is called "". */
export function healthOf(name: string, isServing: () => boolean): Health {
  /** The streams that watch, each with the status that it was told last. */
  const watchers = new Map<grpc.ServerWritableStream<HealthRequest, HealthResponse>, number | undefined>();
  const isKnown = (service: string): boolean => service === "" || service === name;
  const statusNow = (): number => (isServing() ? serving : notServing);
  const tellWatchers = (): void => {
    const status = statusNow();
    for (const [call, told] of watchers) {
      if (told === status) continue;
      watchers.set(call, status);
      call.write({ status });
    }
  };
  const timer = setInterval(tellWatchers, 250).unref();
  return {
    check({ request }, answer) {
      if (isKnown(request.service)) answer(null, { status: statusNow() });
      else answer({ code: grpc.status.NOT_FOUND, details: "unknown service" });
    },
    watch(call) {
      if (!isKnown(call.request.service)) {
        call.write({ status: serviceUnknown });
        return;
      }
      call.on("cancelled", () => watchers.delete(call));
      watchers.set(call, undefined);
      tellWatchers();
    },
    close() {
      clearInterval(timer);
      tellWatchers();
      for (const call of watchers.keys()) call.end();
      watchers.clear();
    },
  };
}
