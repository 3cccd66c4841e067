import { adapterConformance } from "@floodgate/conformance/adapter";
import Koa from "koa";
import { describe, it } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { heldClients } from "../../conformance/test/held-clients.js";
import { koaAdapter } from "./koa-app.js";

const adapter = koaAdapter("Koa 3", Koa);
adapterConformance({ describe, it }, adapter, { effort: allRuns ? 1 : 0.1 });
heldClients(adapter);
