import { prefixed, RedisClient, type Run } from "./client.js";

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
  nodes(role: "master"): ClusterNode[];
}

/** The client of one node. */
interface ClusterNode {
  readonly options: { readonly host?: string; readonly port?: number; readonly keyPrefix?: string | Buffer | undefined };
  // biome-ignore lint/suspicious/noExplicitAny: the overloads of two major versions
  pipeline(...args: any[]): { exec(): Promise<unknown>; call(...args: any[]): unknown };
}

export class IoredisClient<Client extends Ioredis = Ioredis> extends RedisClient {
  protected readonly redis: Client;

  constructor(redis: Client, isCluster = false) {
    super(redis.options?.keyPrefix, isCluster);
    this.redis = redis;
  }

  override get database(): number {
    return Number(this.redis.options?.db ?? 0);
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
  constructor(redis: IoredisCluster) {
    super(redis, true);
  }

  override send(runs: readonly Run[]): Promise<unknown>[] {
    const [first] = runs as [Run];
    // A lone run with one key never meets TRYAGAIN.
    if (runs.length === 1 && first.args[1] === "1") return [send(this.redis, first)];
    const [address, ...others] = new Set(runs.map(({ firstKey }) => this.redis.slots[this.slotOf(firstKey)]?.[0]));
    // Until the client has connected, one queue holds the requests for all servers. Its client sends each of them to its own.
    return this.#sendTo(others.length > 0 ? undefined : address, runs);
  }

  /**
   * Sends runs to one node in one write, or one run that asks it for a slot that is moving there. The node's client passes on all errors. The
   * Cluster's client, which follows redirections, would keep a TRYAGAIN for `retryDelayOnTryAgain`, and the rounds behind it.
   */
  #sendTo(address: string | undefined, runs: readonly Run[], asking = false): Promise<unknown>[] {
    const node = this.redis.nodes("master").find(({ options }) => `${options.host}:${options.port}` === address);
    if (node === undefined) return runs.map((run) => send(this.redis, run));
    const pipeline = node.pipeline();
    // A node's client may have the prefix too.
    const prefix = node.options.keyPrefix ? "" : this.keyPrefix;
    if (asking) pipeline.call("ASKING");
    for (const run of runs) {
      const { command, args } = prefixed(run, prefix);
      pipeline.call(command, ...args);
    }
    const all = pipeline.exec() as Promise<[Error | null, unknown][]>;
    return runs.map((run, i) =>
      all.then((results) => {
        const [error, reply] = results[i + Number(asking)] as [Error | null, unknown];
        if (error === null) return reply;
        const [, target] = /^ASK \d+ (\S+)/.exec(error.message) ?? [];
        if (target !== undefined && !asking) return this.#sendTo(target, [run], true)[0];
        // The node has done nothing. The Cluster's client finds another one.
        if (/^(MOVED|ASK|CLUSTERDOWN) /.test(error.message)) return send(this.redis, run);
        throw error;
      }),
    );
  }

  override serverOf(key: string): string {
    return this.redis.slots[this.slotOf(key)]?.join() ?? "";
  }
}

function send(redis: Ioredis, { command, args }: Run): Promise<unknown> {
  return command === "EVALSHA" ? redis.evalsha(...args) : redis.eval(...args);
}
