import { type PlainRule, reasonsOf } from "@floodgate/core/rules";
import type { Command } from "commander";
import { Failure } from "../failure.js";
import type { Io } from "../io.js";
import { clientAddress, isKeyOrPart } from "../keys.js";
import { examples } from "../options.js";
import { why } from "../output/explanation.js";
import { json } from "../output/terminal.js";
import { keyReasonsJson, keyReasonsText, reasonsJson, reasonsText } from "../output/why.js";
import { withRedis } from "../redis/connection.js";
import { lookAt } from "../redis/look.js";
import { explain, type RequestOptions, requestOptions } from "../request.js";
import { findRules, noRules, type RulesOptions, rulesOptions, storeOf, timeoutMs } from "../rules/rules-in-force.js";

interface WhyOptions extends RulesOptions, RequestOptions {}

export function addWhy(program: Command, io: Io): void {
  const command = program
    .command("why")
    .description(
      "Say why a client is limited: what each limit holds of its key, or what each rule says of a request now. Changes nothing.",
    );
  requestOptions(
    rulesOptions(command),
    'a request that the rules in force are asked about: "POST /posts"',
    "with --request, the value of one of the app's keys; else the key itself, under all limits (repeatable)",
  ).option("--json", "print JSON");
  examples(
    command,
    "why --key 42 --redis redis://127.0.0.1:6379",
    "why --ip 203.0.113.9 --redis redis://127.0.0.1:6379",
    'why --request "POST /posts" --ip 203.0.113.9 --key user=42 --redis redis://127.0.0.1:6379',
  ).action((options: WhyOptions) => (options.request === undefined ? whyKey(io, options) : whyRequest(io, options, options.request)));
}

/** Every limit, in rules or in code, that holds something of a key. */
async function whyKey(io: Io, options: WhyOptions): Promise<void> {
  const { key = [], ip, ipv6Prefix } = options;
  if (ip !== undefined) clientAddress(ip, ipv6Prefix);
  const texts = [...key, ...(ip === undefined ? [] : [ip])];
  if (texts.length === 0) throw new Failure("usage", 'say who: --key 42, --ip 203.0.113.9, or --request "POST /posts".');
  const wanted = texts.map((text) => isKeyOrPart(text, ipv6Prefix));
  const isWanted = (key: string): boolean => wanted.some((isIt) => isIt(key));
  const { keys } = await withRedis(options, (redis) => lookAt(io, redis, { ...options, sample: Number.POSITIVE_INFINITY, isWanted }));
  io.out(options.json === true ? json(keyReasonsJson(keys)) : keyReasonsText(io, texts, keys));
}

/** What each rule in force says of a request, by what Redis holds. */
async function whyRequest(io: Io, options: WhyOptions, line: string): Promise<void> {
  const reasons = await withRedis(options, async (redis) => {
    const found = await findRules(io, options, redis);
    if (found === undefined) throw noRules(options.rulesKey);
    const { rules } = found.set;
    const store = storeOf(redis, options);
    return reasonsOf(
      await explain(io, found.set, options, line),
      (explanation, i) => why(rules[i] as PlainRule, explanation),
      ({ limit, key }) => store.peek(limit, key, timeoutMs),
    );
  });
  io.out(options.json === true ? json(reasonsJson(line, reasons)) : reasonsText(io, line, reasons));
}
