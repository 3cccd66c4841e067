import { adapterConformance } from "@floodgate/conformance";
import { describe, it } from "vitest";
import { koaAdapter } from "./koa-app.js";
import { versions } from "./serving.js";

for (const [name, koa] of versions) adapterConformance({ describe, it }, koaAdapter(name, koa));
