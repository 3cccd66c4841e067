import { once } from "node:events";
import { serve } from "./lib/child.mjs";

const [framework, kind, host] = process.argv.slice(2);

const { start } = await import(`./http/${framework}.mjs`);
const server = start(kind, host);
if (!server.listening) await once(server, "listening");

serve((question) => {
  if (question === "port") return server.address().port;
  const { user, system } = process.cpuUsage();
  return user + system;
});
