// Starts a server and does not stop it.
import { startPrometheus, startRedis } from "@floodgate/test-servers";

const server = process.argv[2] === "prometheus" ? await startPrometheus({ targets: [] }) : await startRedis();
process.send(server.port);
process.on("message", () => {
  throw new Error("on purpose");
});
