export { type Library, libraries } from "./libraries.js";
export { type MigratedCall, type Migration, migrate, type Remark } from "./migrate.js";
