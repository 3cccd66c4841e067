import { conformsOnCluster, conformsOnRedis } from "./conformance.js";

conformsOnRedis("iovalkey");
conformsOnCluster("iovalkey");
