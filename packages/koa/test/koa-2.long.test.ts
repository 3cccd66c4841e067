import { adapterConformance } from "@floodgate/conformance/adapter";
import Koa2 from "koa2";
import { describe, it } from "vitest";
import { type KoaModule, koaAdapter } from "./koa-app.js";

adapterConformance({ describe, it }, { ...koaAdapter("Koa 2", Koa2 as unknown as KoaModule), mutesHead: true });
