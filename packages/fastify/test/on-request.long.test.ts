import { adapterConformance } from "@floodgate/conformance/adapter";
import { describe, it } from "vitest";
import { fastifyAdapter } from "./fastify-app.js";

const noBody = "Fastify has not parsed the body at onRequest";
const leaveOut = { "functions of the app": noBody, "random clients": noBody };

adapterConformance({ describe, it }, fastifyAdapter("Fastify 5 at onRequest", "onRequest"), { effort: 0.1, leaveOut });
