/** Advice for words of gateways in a rules file: nginx, HAProxy, Kong, Traefik, Envoy, Caddy, APISIX, Cloudflare. Core knows those of libraries. */

type Given = Readonly<Record<string, unknown>>;

/** A number of requests in a time: `10r/s` in nginx, `minute: 5` in Kong, `average: 100` in Traefik. */
interface Rate {
  readonly units: number;
  /** `1s`; or `month`, which is no duration. */
  readonly per: string;
  /** The words that say it, as `plain` writes them. */
  readonly words: readonly string[];
  readonly burst?: number | undefined;
  /** Whether it is written as in nginx, where a burst comes on top of a request. */
  readonly isNginx?: boolean;
}

/** Words, and what to write in their place. */
const sentences: readonly (readonly [words: string, advice: string])[] = [
  ["zone sticktable", "Leave it out: the `name` of a rule names its counts"],
  ["nodelay", "Leave it out: only the algorithm leaky-bucket delays requests"],
  ["denystatus", "Leave it out: a rejection is a 429"],
  // For the last two, core advises a function, which a file cannot have.
  ["tracksc0 limitby sourcecriterion characteristics id keygenerator", "Write key: ip"],
];

/** Words that stand for one of our options, with a number or a time. */
const aliases: readonly (readonly [words: string, options: string])[] = [
  ["rate events requests count average requestsperunit requestsperperiod schttpreqrate(0)", "limit capacity"],
  ["maxtokens", "capacity limit"],
  ["tokensperfill", "refill leak limit"],
  ["period timewindow windowsize fillinterval unit", "window every within"],
];

const timeOptions = ["window", "every", "within"];

/** The units of a duration, and how gateways write them. */
const units: readonly (readonly [unit: string, pattern: RegExp])[] = [
  ["ms", /^ms$/],
  ["s", /^(?:s|secs?|seconds?)$/],
  ["m", /^(?:m|mins?|minutes?)$/],
  ["h", /^(?:h|hours?)$/],
  ["d", /^(?:d|days?)$/],
  ["month", /^months?$/],
  ["year", /^years?$/],
];

/**
 * What to write for a word of a gateway, as a sentence; undefined for any other word.
 * @param given the map that has the word.
 * @param known the options that this map may have.
 */
export function gatewayAdvice(word: string, given: unknown, known: readonly string[]): string | undefined {
  const own = plainMap(given as Given);
  const here = plain(word);
  const advice = rateAdvice(here, own, known) ?? textOf(here, sentences) ?? aliasAdvice(here, own[here], known);
  return advice === undefined ? undefined : `${advice}.`;
}

/** By map: a map with thousands of unknown words is read once. */
const plainMaps = new WeakMap<Given, Given>();

function plainMap(given: Given): Given {
  const known = plainMaps.get(given) ?? Object.fromEntries(Object.entries(given).map(([name, value]) => [plain(name), value]));
  plainMaps.set(given, known);
  return known;
}

function plain(word: string): string {
  return word.toLowerCase().replace(/[_-]/g, "");
}

/** The text beside a word in a list. */
function textOf(word: string, list: readonly (readonly [words: string, text: string])[]): string | undefined {
  return list.find(([words]) => words.split(" ").includes(word))?.[1];
}

function rateAdvice(word: string, own: Given, known: readonly string[]): string | undefined {
  const rate = rateOf(word, own);
  if (rate === undefined || ![...rate.words, "burst"].includes(word)) return undefined;
  const isCalendar = rate.per === "month" || rate.per === "year";
  if (known.includes("policy")) {
    if (isCalendar) return `Write policy: { algorithm: calendar-window, limit: ${rate.units}, per: ${rate.per} }`;
    const { isNginx = false, burst = numberOf(own["burst"]) } = rate;
    if (burst) {
      const [algorithm, pace] = isNginx && !("nodelay" in own) ? ["leaky", "leak"] : ["token", "refill"];
      return `Write policy: { algorithm: ${algorithm}-bucket, capacity: ${burst + Number(isNginx)}, ${pace}: ${rate.units}, every: "${rate.per}" }`;
    }
  }
  if (word === "burst" || isCalendar) return undefined;
  const amount = ["limit", "refill", "leak"].find((option) => known.includes(option));
  const time = timeOptions.find((option) => known.includes(option));
  return amount && time && `Write ${amount}: ${rate.units}, ${time}: "${rate.per}"`;
}

function aliasAdvice(word: string, value: unknown, known: readonly string[]): string | undefined {
  const option = textOf(word, aliases)
    ?.split(" ")
    .find((name) => known.includes(name));
  if (option === undefined) return undefined;
  const ours = timeOptions.includes(option) ? timeOf(value) : (numberOf(value) ?? 100);
  return ours === undefined ? undefined : `Write ${option}: ${JSON.stringify(ours)}`;
}

const rateWords =
  "rate ratelimit tokenbucket rps rpm second minute hour day month year average requestsperunit requestsperperiod tokensperfill";

/** Words for a number, and the one beside it for the time. */
const timeWords = [
  ["average requestsperperiod", "period"],
  ["requestsperunit", "unit"],
  ["tokensperfill", "fillinterval"],
] as const;

/** The rate that a map of a gateway says. A word that says one alone comes first: Kong's `second` beside `minute`. */
function rateOf(word: string, own: Given): Rate | undefined {
  for (const said of [word, ...rateWords.split(" ")]) {
    const rate = rateIn(said, own);
    if (rate !== undefined) return rate;
  }
  return undefined;
}

function rateIn(word: string, own: Given): Rate | undefined {
  const value = own[word];
  if (word === "rate" || word === "ratelimit" || word === "tokenbucket") {
    if (typeof value === "object" && value !== null) {
      const inner = plainMap(value as Given);
      const rate = rateOf("", inner);
      return rate && { ...rate, words: [word], burst: numberOf(inner["maxtokens"] ?? inner["burst"]) };
    }
    const [, count, unit, time] = /^\s*(\d{1,12})\s*(r|reqs?|requests?)?\s*(?:\/|per)\s*([\da-z ]+)$/i.exec(`${value}`) ?? [];
    const rate = rateFrom(count, time, [word]);
    return rate && { ...rate, isNginx: unit === "r" };
  }
  const per = /^(?:httpreqrate\((\w+)\)|rp([sm])|(second|minute|hour|day|month|year))$/.exec(word)?.slice(1).find(Boolean);
  if (per !== undefined) return rateFrom(value, per, [word]);
  const time = textOf(word, timeWords);
  return time === undefined ? undefined : rateFrom(value, own[time] ?? (word === "average" ? "1s" : undefined), [word, time]);
}

function rateFrom(count: unknown, time: unknown, words: readonly string[]): Rate | undefined {
  const [units, per] = [numberOf(count), timeOf(time)];
  return units === undefined || units === 0 || per === undefined ? undefined : { units, per, words };
}

/** `1s` for `s`, `second` or `1s`. A number is one of seconds, as in Kong and Cloudflare. */
function timeOf(value: unknown): string | undefined {
  const found = /^\s*(?=\w)(\d{0,9})\s*([a-z]{1,7})?\s*$/i.exec(`${value ?? ""}`);
  if (found === null) return undefined;
  const [, count = "", name = "s"] = found;
  const [unit] = units.find(([, pattern]) => pattern.test(name.toLowerCase())) ?? [];
  if (unit === "month" || unit === "year") return count === "" ? unit : undefined;
  return unit === undefined || Number(count || 1) === 0 ? undefined : `${count || 1}${unit}`;
}

function numberOf(value: unknown): number | undefined {
  const number = typeof value === "string" && /^\d{1,12}$/.test(value) ? Number(value) : value;
  return Number.isSafeInteger(number) && (number as number) >= 0 ? (number as number) : undefined;
}
