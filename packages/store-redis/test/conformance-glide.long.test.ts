import { conformsOnCluster, conformsOnRedis } from "./conformance.js";

conformsOnRedis("Valkey GLIDE");
conformsOnCluster("Valkey GLIDE");
