import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startProxy, type TcpProxy, type WebServer } from "@floodgate/test-servers";
import { type Running, type Settings, serve } from "../../src/index.js";
import { App } from "./app.js";

/** Where a gateway finds the decision server and the app, and how long it waits for the decision server. */
export interface Neighbours {
  readonly ask: number;
  readonly app: number;
  readonly deadlineMs: number;
}

/** A gateway, started with the config of its page. */
export interface GatewayUnderTest {
  readonly name: string;
  /** Makes sure that it is installed, and says its version. */
  version(): string;
  /** @param raised whether it takes larger requests than by default. */
  start(neighbours: Neighbours, onFailure: "open" | "closed", raised: boolean): Promise<WebServer>;
  /** Whether the body of a 429 is the decision server's. nginx makes its own. */
  readonly passesBody: boolean;
  /** What a client gets if the decision server does not answer, and the gateway fails closed. */
  readonly closedStatus: readonly number[];
  /** How many connections to the decision server 40 requests in turn need at most. Undefined: one for each of many threads. */
  readonly connections: number | undefined;
}

/** The deadline that the configs of all pages have. */
export const pageDeadlineMs = 250;

/** A deadline that a busy machine keeps, for tests that count. */
export const longDeadlineMs = 15_000;

export const limit = 5;

/** A window of 365 days does not end in a test. */
const policy = `policy: { algorithm: fixed-window, limit: ${limit}, window: 365d }`;
const rules = `rules:
  - { name: by-ip, match: { path: "/ip/*" }, key: ip, ${policy} }
  - { name: by-key, match: { path: "/key/*" }, key: "header:x-api-key", ${policy} }
  - { name: by-demanded-key, match: { path: "/demand/*" }, key: "header:x-api-key", onMissingKey: error, ${policy} }
  - { name: by-user, match: { path: "/user/*" }, key: user, ${policy} }
  - { name: by-path, match: { path: "/paths/:id/edit" }, key: ip, ${policy} }
  - { name: by-method, match: { method: POST, path: /posts }, key: ip, ${policy} }
  - { name: anywhere, match: { header: { host: anywhere.example } }, key: ip, ${policy} }
  - { name: reads, match: { method: GET, path: /reads }, key: ip, ${policy} }
`;

/** A decision server, a network in front of it that can fail, and an app. */
export class Stage {
  readonly app: App = new App();
  readonly #dir: string = mkdtempSync(join(tmpdir(), "floodgate-gateways-test-"));
  readonly #stops: (() => unknown)[] = [];

  async start(): Promise<void> {
    writeFileSync(join(this.#dir, "limits.yaml"), rules);
    await this.app.start();
    this.#stops.push(() => this.app.stop());
  }

  /** Starts a decision server. Gateways reach it at its own port, or at that of a network that can fail. */
  async decisionServer(settings: Partial<Settings> = {}): Promise<{ readonly port: number; readonly network: TcpProxy }> {
    const running: Running = await serve({
      rules: join(this.#dir, "limits.yaml"),
      listen: "127.0.0.1:0",
      admin: false,
      // The clients are 127.1.x.x.
      trustedPeers: ["127.0.0.1"],
      keys: { user: "header:x-user" },
      logLevel: "silent",
      drainMs: 0,
      closeMs: 0,
      timeoutMs: longDeadlineMs,
      ...settings,
    });
    const port = Number(running.addresses["listen"]?.split(":").pop());
    const network = await startProxy(port);
    this.#stops.push(() => {
      network.stop();
      return running.close();
    });
    return { port, network };
  }

  /** Starts a gateway. It is stopped with the stage. */
  async gateway(
    gateway: GatewayUnderTest,
    ask: number,
    onFailure: "open" | "closed",
    deadlineMs: number,
    raised = false,
  ): Promise<WebServer> {
    const server = await gateway.start({ ask, app: this.app.port, deadlineMs }, onFailure, raised);
    this.#stops.push(() => server.stop());
    return server;
  }

  async stop(): Promise<void> {
    for (const stop of this.#stops.reverse()) await stop();
    rmSync(this.#dir, { recursive: true });
  }
}
