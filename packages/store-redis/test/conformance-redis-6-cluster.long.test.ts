import { conformsOnCluster } from "./conformance.js";

conformsOnCluster("redis 6");
