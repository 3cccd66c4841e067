import { once } from "node:events";
import { createServer } from "node:http";
import { serve } from "./lib/child.mjs";

const [framework, kind, host] = process.argv.slice(2);

const { listener } = await import(`./http/${framework}.mjs`);
const server = createServer(listener(kind)).listen(0, host);
await once(server, "listening");

serve((question) => {
  if (question === "port") return server.address().port;
  const { user, system } = process.cpuUsage();
  return user + system;
});
