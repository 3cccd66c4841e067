// Starts a server and does not stop it.
import { startApache, startNginx, startPrometheus, startRedis } from "@floodgate/test-servers";

const starts = {
  prometheus: () => startPrometheus({ targets: [] }),
  nginx: () => startNginx({ config: ({ port }) => `server { listen 127.0.0.1:${port}; return 200; }` }),
  apache: () => startApache({ config: () => "" }),
};
const server = await (starts[process.argv[2]] ?? startRedis)();
process.send(server.port);
process.on("message", () => {
  throw new Error("on purpose");
});
