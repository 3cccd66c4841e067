import calculateSlot from "cluster-key-slot";
import { RedisClient, type Run } from "./client.js";

/** The used part of ioredis's `Redis` (5 and 6), with an address or Sentinels. */
export interface Ioredis {
  readonly status: string;
  readonly options?: { readonly db?: number | undefined; readonly keyPrefix?: string | Buffer | undefined };
  connect(): Promise<unknown>;
  // biome-ignore lint/suspicious/noExplicitAny: the overloads of two major versions
  evalsha(...args: any[]): Promise<unknown>;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  eval(...args: any[]): Promise<unknown>;
}

/** The used part of ioredis's `Cluster` (5 and 6). */
export interface IoredisCluster extends Ioredis {
  readonly isCluster: boolean;
  readonly slots: readonly (readonly string[])[];
  readonly options: { readonly keyPrefix?: string | Buffer | undefined };
  // biome-ignore lint/suspicious/noExplicitAny: as above
  pipeline(...args: any[]): { exec(): Promise<unknown>; evalsha(...args: any[]): unknown; eval(...args: any[]): unknown };
}

export class IoredisClient<Client extends Ioredis = Ioredis> extends RedisClient {
  protected readonly redis: Client;
  protected readonly keyPrefix: string;

  constructor(redis: Client) {
    super();
    this.redis = redis;
    this.keyPrefix = String(redis.options?.keyPrefix ?? "");
  }

  override get place(): RedisClient["place"] {
    return { database: Number(this.redis.options?.db ?? 0), keyPrefix: this.keyPrefix };
  }

  get isReady(): boolean {
    return this.redis.status === "ready";
  }

  override wake(): string | undefined {
    const { status } = this.redis;
    if (status === "wait") this.redis.connect().catch(() => undefined);
    return status === "end" ? "the client has been closed (by quit, by disconnect, or because it gave up connecting)" : undefined;
  }

  send(runs: readonly Run[]): Promise<unknown>[] {
    return runs.map((run) => send(this.redis, run));
  }
}

export class IoredisClusterClient extends IoredisClient<IoredisCluster> {
  override readonly isCluster = true;

  override send(runs: readonly Run[]): Promise<unknown>[] {
    if (runs.length === 1) return [send(this.redis, runs[0] as Run)];
    const pipeline = this.redis.pipeline();
    for (const run of runs) {
      if (run.command === "EVALSHA") pipeline.evalsha(...run.args);
      else pipeline.eval(...run.args);
    }
    const all = pipeline.exec() as Promise<[Error | null, unknown][]>;
    return runs.map((run, i) =>
      all.then(
        (results) => {
          const [error, reply] = results[i] as [Error | null, unknown];
          if (error === null) return reply;
          if (isRedirection(error)) return send(this.redis, run);
          throw error;
        },
        (error: Error) => {
          if (/slots? allocation group/.test(error.message)) return send(this.redis, run);
          throw error;
        },
      ),
    );
  }

  override slotOf(key: string): number {
    return calculateSlot(this.keyPrefix + key);
  }

  override serverOf(slot: number): string {
    return this.redis.slots[slot]?.join() ?? "";
  }
}

function send(redis: Ioredis, { command, args }: Run): Promise<unknown> {
  return command === "EVALSHA" ? redis.evalsha(...args) : redis.eval(...args);
}

/** The slot is on another server and nothing was done. Sent outside a pipeline, the library follows the redirection. */
function isRedirection(error: Error): boolean {
  return /^(MOVED|ASK) /.test(error.message);
}
