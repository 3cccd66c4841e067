export { type Library, libraries, type MigratedCall, type Migration, migrate, type Remark } from "./migrate.js";
