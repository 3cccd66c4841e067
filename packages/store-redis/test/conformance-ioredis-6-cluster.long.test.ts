import { conformsOnCluster } from "./conformance.js";

conformsOnCluster("ioredis 6");
