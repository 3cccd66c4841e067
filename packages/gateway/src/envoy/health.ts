import {
  type handleServerStreamingCall,
  type handleUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  status,
} from "@grpc/grpc-js";
import { Reader, Writer } from "protobufjs/minimal";

/** `grpc.health.v1.Health`, which Envoy's `grpc_health_check` asks. */

const healthStatus = { serving: 1, notServing: 2, serviceUnknown: 3 } as const;
type HealthStatus = (typeof healthStatus)[keyof typeof healthStatus];

interface HealthRequest {
  readonly service: string;
}

const codec = {
  requestSerialize: ({ service }: HealthRequest): Buffer => Writer.create().uint32(10).string(service).finish() as Buffer,
  requestDeserialize: (bytes: Buffer): HealthRequest => {
    const reader = Reader.create(bytes);
    let service = "";
    while (reader.pos < reader.len) {
      const tag = reader.uint32();
      if (tag >>> 3 === 1) service = reader.string();
      else reader.skipType(tag & 7);
    }
    return { service };
  },
  responseSerialize: (health: HealthStatus): Buffer => Writer.create().uint32(8).int32(health).finish() as Buffer,
  responseDeserialize: (bytes: Buffer): HealthStatus => (bytes[1] ?? 0) as HealthStatus,
};

export const healthService: ServiceDefinition = {
  Check: { path: "/grpc.health.v1.Health/Check", requestStream: false, responseStream: false, ...codec },
  Watch: { path: "/grpc.health.v1.Health/Watch", requestStream: false, responseStream: true, ...codec },
};

/** Answers health checks for services that all have one health. */
export class Health {
  readonly #services: ReadonlySet<string>;
  readonly #isServing: () => boolean;
  readonly #watchers = new Map<ServerWritableStream<HealthRequest, HealthStatus>, HealthStatus>();
  readonly #timer: NodeJS.Timeout;

  /** @param services beside "", the server as a whole. */
  constructor(services: readonly string[], isServing: () => boolean) {
    this.#services = new Set(["", ...services]);
    this.#isServing = isServing;
    this.#timer = setInterval(() => this.#tellWatchers(), 250).unref();
  }

  readonly check: handleUnaryCall<HealthRequest, HealthStatus> = ({ request }, answer) => {
    if (this.#services.has(request.service)) answer(null, this.#status);
    else answer({ code: status.NOT_FOUND, details: "unknown service" });
  };

  readonly watch: handleServerStreamingCall<HealthRequest, HealthStatus> = (call) => {
    const first = this.#services.has(call.request.service) ? this.#status : healthStatus.serviceUnknown;
    if (first !== healthStatus.serviceUnknown) {
      this.#watchers.set(call, first);
      call.on("cancelled", () => this.#watchers.delete(call));
    }
    call.write(first);
  };

  /** Ends the streams that watch. */
  close(): void {
    clearInterval(this.#timer);
    this.#tellWatchers();
    for (const call of this.#watchers.keys()) call.end();
    this.#watchers.clear();
  }

  get #status(): HealthStatus {
    return this.#isServing() ? healthStatus.serving : healthStatus.notServing;
  }

  #tellWatchers(): void {
    for (const [call, known] of this.#watchers) {
      if (known === this.#status) continue;
      this.#watchers.set(call, this.#status);
      call.write(this.#status);
    }
  }
}
