import { MessageChannel } from "node:worker_threads";
import type { Store } from "@floodgate/core";
import { clusterStore, type ServeOptions, serveClusterStore } from "../src/index.js";

let made = 0;

/** A store over a channel of its own, with a name of its own. `close` closes the channel. */
export function connected(options: ServeOptions): Store<"async"> & { close(): void } {
  const { port1, port2 } = new MessageChannel();
  const name = `connected-${made++}`;
  const served = serveClusterStore({ name, ...options });
  served.connect(port1);
  return Object.assign(clusterStore({ port: port2, name }), {
    close: () => {
      served.close();
      port1.close();
    },
  });
}
