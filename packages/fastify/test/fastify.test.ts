import { adapterConformance } from "@floodgate/conformance/adapter";
import { describe, it } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { heldClients } from "../../conformance/test/held-clients.js";
import { fastifyAdapter } from "./fastify-app.js";

// Keys of the suite read the body, so its limits stand at `preHandler`.
const adapter = fastifyAdapter("Fastify 5", "preHandler");
adapterConformance({ describe, it }, adapter, { effort: allRuns ? 1 : 0.1 });
heldClients(adapter);
