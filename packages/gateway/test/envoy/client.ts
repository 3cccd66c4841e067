import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CallOptions, type ChannelCredentials, Client, credentials, type ServiceError } from "@grpc/grpc-js";
import protobuf from "protobufjs";
import { type Running, type Settings, serve } from "../../src/index.js";

/** Envoy's messages, with the names and field numbers of its own files; not those of the server. */
const { root } = protobuf.parse(
  `
syntax = "proto3";
message UInt64Value { uint64 value = 1; }
message Duration { int64 seconds = 1; int32 nanos = 2; }
message Entry { string key = 1; string value = 2; }
message RateLimitOverride { uint32 requests_per_unit = 1; int32 unit = 2; }
message RateLimitDescriptor {
  repeated Entry entries = 1;
  RateLimitOverride limit = 2;
  UInt64Value hits_addend = 3;
  bool is_negative_hits = 4;
}
message RateLimitRequest { string domain = 1; repeated RateLimitDescriptor descriptors = 2; uint32 hits_addend = 3; }
message RateLimit { uint32 requests_per_unit = 1; int32 unit = 2; string name = 3; }
message DescriptorStatus { int32 code = 1; RateLimit current_limit = 2; uint32 limit_remaining = 3; Duration duration_until_reset = 4; }
message HeaderValue { string key = 1; string value = 2; }
message RateLimitResponse {
  int32 overall_code = 1;
  repeated DescriptorStatus statuses = 2;
  repeated HeaderValue response_headers_to_add = 3;
  repeated HeaderValue request_headers_to_add = 4;
  bytes raw_body = 5;
}
`,
  { keepCase: true },
);
const requestType = root.lookupType("RateLimitRequest");
const responseType = root.lookupType("RateLimitResponse");

export interface DescriptorSent {
  readonly entries: readonly { readonly key: string; readonly value: string }[];
  readonly limit?: { readonly requests_per_unit: number; readonly unit: number };
  readonly hits_addend?: { readonly value: number | string };
  readonly is_negative_hits?: boolean;
}

export interface Sent {
  readonly domain: string;
  readonly descriptors: readonly DescriptorSent[];
  readonly hits_addend?: number;
}

export interface Status {
  readonly code: "OK" | "OVER_LIMIT";
  readonly limit: { readonly requests_per_unit: number; readonly unit: number; readonly name: string } | undefined;
  readonly remaining: number;
  readonly resetMs: number | undefined;
}

export interface Answered {
  readonly code: "OK" | "OVER_LIMIT";
  readonly statuses: readonly Status[];
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** `descriptor("path=/login", "tier=free")` */
export function descriptor(...entries: readonly string[]): DescriptorSent {
  return {
    entries: entries.map((entry) => {
      const [key = "", ...value] = entry.split("=");
      return { key, value: value.join("=") };
    }),
  };
}

export function encode(sent: Sent): Buffer {
  return Buffer.from(requestType.encode(requestType.fromObject(sent)).finish());
}

export function decode(bytes: Uint8Array): Answered {
  const message = responseType.toObject(responseType.decode(bytes), { longs: Number, bytes: Buffer, defaults: true });
  const codeOf = (code: number): "OK" | "OVER_LIMIT" => {
    if (code === 1) return "OK";
    if (code === 2) return "OVER_LIMIT";
    throw new Error(`unknown code ${code}`);
  };
  return {
    code: codeOf(message["overall_code"]),
    // biome-ignore lint/suspicious/noExplicitAny: a message without a type
    statuses: message["statuses"].map((status: any) => ({
      code: codeOf(status.code),
      limit: status.current_limit ?? undefined,
      remaining: status.limit_remaining,
      resetMs: status.duration_until_reset
        ? status.duration_until_reset.seconds * 1000 + status.duration_until_reset.nanos / 1e6
        : undefined,
    })),
    headers: Object.fromEntries(
      message["response_headers_to_add"].map(({ key, value }: { key: string; value: string }) => [key.toLowerCase(), value]),
    ),
    body: message["raw_body"].toString(),
  };
}

/** Asks like Envoy does: one channel, many calls. */
export class Envoy {
  readonly #client: Client;

  constructor(address: string, options: { readonly credentials?: ChannelCredentials } = {}) {
    // Each client has a connection of its own.
    this.#client = new Client(address, options.credentials ?? credentials.createInsecure(), {
      "grpc.use_local_subchannel_pool": 1,
      // TLS has no addresses as names. Node 26 refuses them.
      "grpc.ssl_target_name_override": "localhost",
    });
  }

  async ask(sent: Sent, options?: CallOptions): Promise<Answered> {
    return decode(await this.bytes(encode(sent), options));
  }

  bytes(
    bytes: Buffer,
    options: CallOptions = {},
    method = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
  ): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const same = (value: Buffer): Buffer => value;
      this.#client.makeUnaryRequest(method, same, same, bytes, options, (error: ServiceError | null, answer?: Buffer) =>
        error === null ? resolve(answer as Buffer) : reject(error),
      );
    });
  }

  /** What `grpc.health.v1.Health` answers: 1 serving, 2 not serving. */
  async health(service = ""): Promise<number> {
    const name = Buffer.from(service);
    const request = service === "" ? Buffer.alloc(0) : Buffer.concat([Buffer.from([0x0a, name.length]), name]);
    const answer = await this.bytes(request, {}, "/grpc.health.v1.Health/Check");
    return answer[0] === 0x08 ? (answer[1] as number) : 0;
  }

  close(): void {
    this.#client.close();
  }
}

const opened: (() => unknown)[] = [];

/** Closes what `start` and `connect` have opened in this test. */
export async function closeAll(): Promise<void> {
  for (const close of opened.splice(0).reverse()) await close();
}

export interface Started {
  readonly address: string;
  readonly running: Running;
  readonly lines: string[];
  /** Writes another version of the rules file. */
  write(rules: string): void;
  connect(): Envoy;
}

/** Starts `floodgate serve` with these rules (YAML) and Envoy's rate limit service. */
export async function start(rules: string, settings: Partial<Settings> = {}): Promise<Started> {
  const folder = mkdtempSync(join(tmpdir(), "floodgate-rls-"));
  opened.push(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "limits.yaml");
  const write = (text: string): void => writeFileSync(file, `rules:\n${text}`);
  write(rules);
  const lines: string[] = [];
  const running = await serve(
    { rules: file, listen: "127.0.0.1:0", admin: false, rls: "127.0.0.1:0", drainMs: 0, closeMs: 2000, ...settings },
    { log: { write: (line) => void lines.push(line) } },
  );
  opened.push(() => running.close());
  const address = running.addresses["rls"] as string;
  return { address, running, lines, write, connect: () => connect(address) };
}

export function connect(address: string, options?: { readonly credentials?: ChannelCredentials }): Envoy {
  const envoy = new Envoy(address, options);
  opened.push(() => envoy.close());
  return envoy;
}
