import type { Options } from "./options.js";

const knownDrafts = ["standard", "draft-7", "draft-6"];

/**
 * `standardHeaders` and `legacyHeaders` become `headers`, so that clients see the same fields.
 * @param standardDefault the draft that the library sends if `standardHeaders` is not given.
 * @param legacyDefault whether it sends X-RateLimit-* if `legacyHeaders` is not given.
 */
export function rewriteHeaders(options: Options, standardDefault: string | false, legacyDefault: boolean): void {
  const standard = options.take("standardHeaders", "draft_polli_ratelimit_headers");
  const legacy = options.take("legacyHeaders", "headers");
  const drafts = standard === undefined ? standardDefault : standard.constant;
  const isLegacy = legacy === undefined ? legacyDefault : legacy.constant;
  const draft = drafts === true ? "draft-6" : drafts === "draft-8" ? "standard" : drafts;
  if (typeof isLegacy !== "boolean" || (draft !== false && !(typeof draft === "string" && knownDrafts.includes(draft)))) {
    (standard ?? legacy ?? options).handle('Write `headers: "standard"`, "draft-7", "draft-6", "legacy" or false.');
    return;
  }
  const names = [...(draft === false ? [] : [draft]), ...(isLegacy ? ["legacy"] : [])].map((name) => JSON.stringify(name));
  if (draft === "standard" && !isLegacy) options.remove(standard, legacy);
  else options.put(`headers: ${names.length === 0 ? "false" : names.length === 1 ? names[0] : `[${names.join(", ")}]`}`, standard, legacy);
}
