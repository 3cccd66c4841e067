import { adapterConformance, requestServer } from "@floodgate/conformance/adapter";
import { describe, it } from "vitest";
import { fetchAdapter } from "./fetch-app.js";

adapterConformance({ describe, it }, fetchAdapter("Request and Response without a response of Node", requestServer));
