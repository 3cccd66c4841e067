import { adapterConformance } from "@floodgate/conformance/adapter";
import { describe, it } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { routerAdapter } from "./router-app.js";

adapterConformance({ describe, it }, routerAdapter, { effort: allRuns ? 1 : 0.1 });
