import { adapterConformance } from "@floodgate/conformance/adapter";
import express4 from "express4";
import { describe, it } from "vitest";
import { type ExpressModule, expressAdapter } from "./express-app.js";

adapterConformance({ describe, it }, expressAdapter("Express 4", express4 as unknown as ExpressModule));
