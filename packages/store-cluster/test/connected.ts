import { MessageChannel } from "node:worker_threads";
import type { Store } from "@floodgate/core";
import { clusterStore, type ServeOptions, serveClusterStore } from "../src/index.js";

/** A store over a channel of its own. `close` closes the channel. */
export function connected(options: ServeOptions): Store<"async"> & { close(): void } {
  const { port1, port2 } = new MessageChannel();
  const served = serveClusterStore(options);
  served.connect(port1);
  return Object.assign(clusterStore({ port: port2 }), {
    close: () => {
      served.close();
      port1.close();
    },
  });
}
