// Starts a server and does not stop it.
import { startRedis } from "@floodgate/test-servers";

const redis = await startRedis();
process.send(redis.port);
process.on("message", () => {
  throw new Error("on purpose");
});
