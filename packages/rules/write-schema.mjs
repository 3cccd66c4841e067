// Writes schema.json anew from the schema that files are checked with: `npm run schema`, once `tsc -b` has run.
import { writeFileSync } from "node:fs";
import { rulesSchema } from "./dist/index.js";

writeFileSync(new URL("schema.json", import.meta.url), `${JSON.stringify(rulesSchema, null, 2)}\n`);
