import { RedisClient, type Run } from "./client.js";

/** The used part of a `GlideClient` or `GlideClusterClient` of Valkey GLIDE 2. */
export interface Glide {
  // biome-ignore lint/suspicious/noExplicitAny: the two clients have other options
  customCommand(args: string[], options?: any): Promise<unknown>;
}

/** GLIDE connects before it hands out a client, and sends to whichever server has the slot. */
export class GlideClientOf extends RedisClient {
  /** Each command is a task of its own there. */
  override readonly keepsOrder = false;
  readonly isReady = true;
  readonly #glide: Glide;

  constructor(glide: Glide, isCluster: boolean) {
    super(undefined, isCluster);
    this.#glide = glide;
  }

  override get database(): number {
    const { config } = this.#glide as { readonly config?: { readonly databaseId?: number } };
    return config?.databaseId ?? 0;
  }

  send(runs: readonly Run[]): Promise<unknown>[] {
    return runs.map(({ command, args, firstKey }) => {
      const route = this.isCluster ? { route: { type: "primarySlotKey", key: firstKey } } : undefined;
      return this.#glide.customCommand([command, ...args], route).catch((error: Error) => {
        // It has words of its own for the server's codes.
        throw new Error(error.message.replace(/^.*\bNoScriptError\b/, "NOSCRIPT"), { cause: error });
      });
    });
  }
}
