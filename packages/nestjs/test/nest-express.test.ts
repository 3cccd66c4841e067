import { adapterConformance } from "@floodgate/conformance/adapter";
import { describe, it } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { heldClients } from "../../conformance/test/held-clients.js";
import { nestAdapter } from "./nest-app.js";

const adapter = nestAdapter("Nest on Express", "express");
adapterConformance({ describe, it }, adapter, { effort: allRuns ? 1 : 0.1 });
heldClients(adapter);
