import { adapterConformance } from "@floodgate/conformance/adapter";
import { describe, it } from "vitest";
import { honoAdapter } from "./hono-app.js";
import { requestServer } from "./request-server.js";

adapterConformance({ describe, it }, honoAdapter("Hono through app.request()", requestServer));
