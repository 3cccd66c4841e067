import { file, type Level } from "./plan.js";
import type { Random } from "./random.js";

const usual = ["42", "ann", "7"];
const unusual = [
  ...["O'Brien", "x'''''y", "a@b", "x:", "a{b}c", "\xe9", "..", ".", "%2e%2e", "a%2Fb", "%zz", '"', "^`|", "a%23", "%27", "\\", "x%2f.."],
  ...["http:", "a;b", "a.b", "%2E", "..%2f", "<a>", "é", "\x01", "", "reset", "login"],
  ...["caf\u00e9", "caf\xc3\xa9", "CAF%c3%89", "cafe%CC%81", "%C4%B0", "i%CC%87", "STRASSE", "stra%C3%9Fe", "%ED%A0%80", "%F0%9F%98%80"],
  ...["%252e", "%2f", "a+b", "%c0%ae", "*", ":id", "a%00"],
];

const odd = [
  ..."#'\"\\^`{|}<>\xa0\xe9\t\f\x01@:;.%?&=/ \ufeff+*,!$()\u0130",
  ...["//", "/./", "/../", "/x/../", "%2f", "%5c", "//a@b", "%2e%2e/", "/..;/", "/;/", ";/", "/%20/", "/%2e/", "/.%2e/", "?/../"],
  ...["%25", "%3f", "%23", "%3b", "%00", "%20", "%c3", "%A9", "%5C..%5c", "%2F..", "\\..\\"],
];

/** The plain path of a random route. */
export function plainPath(random: Random, plan: Level): string {
  const pieces: string[] = [];
  const values = random.oneIn(2) ? usual : unusual;
  const instance = (pattern: string): string =>
    pattern.replace(/:\w+/g, () => random.from(values)).replace("*", () => random.from(["", "a", "a/b/c"]));
  for (let level: Level | undefined = plan; level !== undefined; ) {
    pieces.push(instance(level.mount));
    for (const rewrite of level.rewrites) {
      if (random.oneIn(2)) pieces.push("strip" in rewrite ? rewrite.strip : random.from([rewrite.from, rewrite.to]));
    }
    if (level.below.length > 0 && !random.oneIn(4)) {
      level = level.below[0];
      continue;
    }
    if (level.files !== undefined && random.oneIn(2)) pieces.push(instance(level.files), `/${file}`);
    else pieces.push(instance(random.from(level.routes).pattern));
    break;
  }
  return pieces.join("").replace(/\/{2,}/g, "/") || "/";
}

/** A mutation of a path. */
export function mutated(random: Random, path: string): string {
  let target = path;
  for (let times = 1 + random.below(random.from([1, 2, 3])); times > 0; times--) target = mutate(random, target);
  target = target.replaceAll(" ", "%20");
  // HTTP allows no other targets.
  return /^(?:\/|[a-z][a-z\d+.-]*:\/\/)/i.test(target) ? target : `/${target}`;
}

function mutate(random: Random, target: string): string {
  const at = random.below(target.length + 1);
  switch (random.below(12)) {
    case 0:
      return `${target}${random.from(["#", "\xa0", "?x#", "#/x", "\ufeff", "?", "/", "//", "/.", "\t"])}`;
    case 1:
      return `${random.from(["http://h", "http://u:p@h", "HTTP://h:80", "http://h'x", "http://", "x://h", "//a@b", "/", "http://h\\"])}${target}`;
    case 2:
      return target.slice(0, at) + target.slice(at).replace("/", () => random.from(["\\", "//", "/./", "%2f", "/x/../", "/'/"]));
    case 3:
      return target.slice(0, at) + flipped(target[at] ?? "") + target.slice(at + 1);
    case 4:
      return target.slice(0, at) + encoded(target[at] ?? "", random.from(["%", "%", "%25", "%2525"])) + target.slice(at + 1);
    case 5:
      return random.from(["/en", "/v1", "/api", "/x", "/..", "/.", "/old"]) + target;
    case 6:
      return target.slice(0, at) + target.slice(at + 1);
    case 7: {
      const cut = random.below(target.length + 1);
      return target.slice(0, at) + "'".repeat(1 + random.below(4)) + target.slice(at, cut) + target.slice(at);
    }
    case 8:
      return `${target.toUpperCase()}`;
    default:
      return target.slice(0, at) + random.from(odd) + target.slice(at);
  }
}

function flipped(character: string): string {
  return character === character.toLowerCase() ? character.toUpperCase() : character.toLowerCase();
}

function encoded(character: string, sign: string): string {
  return character === "" ? "" : `${sign}${character.charCodeAt(0).toString(16).padStart(2, "0").slice(-2)}`;
}
