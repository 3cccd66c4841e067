// biome-ignore-all assist/source/organizeImports: grouped by topic

// Programs
export { program } from "./programs.js";

// Redis and Valkey
export { availableServers, valkeyServer } from "./programs.js";
export { type Monitor, type RedisConfig, type RedisOptions, type RedisServer, type Reply, startRedis } from "./redis-server.js";

// Groups of servers
export { type ClusterOptions, type RedisCluster, startCluster } from "./cluster.js";
export { type RedisSentinel, startSentinel } from "./sentinel.js";

// Prometheus
export { type PrometheusServer, promtool, startPrometheus } from "./prometheus-server.js";

// Databases
export { type DatabaseServer, mysqlServers, startMariadb, startEtcd, startPgBouncer, startPostgres } from "./database-server.js";

// Web servers
export {
  type ApacheOptions,
  startApache,
  startCaddy,
  startHaproxy,
  startNginx,
  type WebServer,
  type WebServerOptions,
} from "./web-servers.js";
export type { ServerPlace } from "./private-server.js";
export { sparePort } from "./port.js";

// Network faults
export { type ProxyDirection, type ProxyMode, startProxy, type TcpProxy } from "./proxy.js";
