import { adapterConformance, requestServer } from "@floodgate/conformance/adapter";
import { describe, it } from "vitest";
import { honoAdapter } from "./hono-app.js";

const adapter = honoAdapter("Hono through app.request()", (app) => requestServer((request, env) => app.request(request, undefined, env)));
adapterConformance({ describe, it }, adapter);
