import { createServer, type Server } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { adapterConformance } from "@floodgate/conformance/adapter";
import { toNodeHandler } from "srvx/node";
import { describe, it } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { fetchAdapter } from "./fetch-app.js";

const adapter = fetchAdapter(
  "Request and Response on srvx",
  (fetch) => createServer(toNodeHandler(fetch) as never),
  (fetch) => createHttp2Server(toNodeHandler(fetch) as never) as unknown as Server,
);
adapterConformance({ describe, it }, adapter, { effort: allRuns ? 1 : 0.1 });
