import { constantOf } from "./nodes.js";
import type { Options } from "./options.js";
import { valueIn } from "./rewriting.js";
import type { Source } from "./source.js";

/**
 * `standardHeaders` and `legacyHeaders` become `headers`, so that clients see the same fields.
 * @param standardDefault the draft that the library sends if `standardHeaders` is not given.
 * @param legacyDefault whether it sends X-RateLimit-* if `legacyHeaders` is not given.
 */
export function headersOf(source: Source, options: Options, standardDefault: string | false, legacyDefault: boolean): void {
  const standard = options.take("standardHeaders", "draft_polli_ratelimit_headers");
  const legacy = options.take("legacyHeaders", "headers");
  const drafts = standard === undefined ? standardDefault : constantOf(valueIn(standard));
  const isLegacy = legacy === undefined ? legacyDefault : constantOf(valueIn(legacy));
  const draft = drafts === true ? "draft-6" : drafts === "draft-8" ? "standard" : drafts;
  const first = standard ?? legacy;
  if (typeof isLegacy !== "boolean" || (draft !== false && typeof draft !== "string")) {
    source.handle(first ?? options.object, 'Write `headers: "standard"`, "draft-7", "draft-6", "legacy" or false.');
    return;
  }
  const names = [...(draft === false ? [] : [draft]), ...(isLegacy ? ["legacy"] : [])].map((name) => JSON.stringify(name));
  if (standard !== undefined && legacy !== undefined) options.remove(legacy);
  if (names.length === 1 && draft === "standard") {
    options.remove(first);
    return;
  }
  const code = `headers: ${names.length === 0 ? "false" : names.length === 1 ? names[0] : `[${names.join(", ")}]`}`;
  if (first === undefined) options.add(code);
  else options.set(first, code);
}
