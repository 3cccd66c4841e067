import { adapterConformance } from "@floodgate/conformance";
import Koa from "koa";
import { describe, it } from "vitest";
import { koaAdapter } from "./koa-app.js";

adapterConformance({ describe, it }, koaAdapter("Koa 3", Koa));
