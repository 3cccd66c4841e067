export { type ClusterStoreOptions, clusterStore } from "./cluster-store.js";
export type { Port } from "./messages.js";
export { type ServedStore, type ServeOptions, serveClusterStore } from "./serve.js";
