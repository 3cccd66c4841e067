import type { Policy } from "@floodgate/core";
import { descriptions, invalidOption, nearest, type OptionDescription, toPolicy } from "@floodgate/core/rules";
import { algorithmNames } from "./options.js";

/** Why policies of the other algorithms have no text. */
const notCompared: Readonly<Record<string, string>> = {
  "calendar-window":
    "a calendar window is a quota for a day or a month, and begins anew in a time zone, so it has no rate. Write a rule with it, and replay that: --rules limits.yaml. For days in UTC, fixed-window 100/1d counts the same.",
  concurrency: "it counts requests that run at the same time, and a log does not say when a request ended.",
};

const example = "Write '100/1m', 'token-bucket 20 10/s' or 'sliding-window-counter 100/1m buckets=6'.";

/**
 * The policy that a text stands for: the name of an algorithm, a rate, and the other numbers in the order of the algorithm's options. Without
 * a name it is a sliding window counter, as in rules. `100/1m`, `token-bucket 20 10/s`, `gcra 100/1m 20`, `leaky-bucket 10 5/s`,
 * `sliding-window-log 100/1m countRejected`.
 * @throws FloodgateError if the text is invalid.
 */
export function parsePolicy(text: string): Policy {
  const where = `the policy ${JSON.stringify(text)}`;
  const words = text.trim().split(/\s+/);
  const [first = ""] = words;
  const named = algorithmNames.find((name) => name === first.toLowerCase());
  const without = notCompared[first.toLowerCase()];
  if (without !== undefined) throw invalidOption(`${where} cannot be compared: ${without}`);
  if (named === undefined && /^[a-z]/i.test(first)) {
    const near = nearest(first, algorithmNames);
    throw invalidOption(
      `${where}: there is no algorithm ${JSON.stringify(first)}.${near === undefined ? "" : ` Did you mean ${near}?`} The algorithms are ${algorithmNames.join(", ")}.`,
    );
  }
  const algorithm = named ?? "sliding-window-counter";
  const options: Readonly<Record<string, OptionDescription>> = descriptions[algorithm].options;
  const given: Record<string, unknown> = {};
  const set = (option: string, value: unknown): void => {
    if (option in given) throw invalidOption(`${where} says \`${option}\` twice. ${example}`);
    given[option] = value;
  };
  const numbers: number[] = [];
  for (const word of named === undefined ? words : words.slice(1)) {
    const [, units, length] = /^(\d+)\/(\d*(?:ms|s|m|h|d))$/.exec(word) ?? [];
    const [, option, value] = /^(\w+)=(.+)$/.exec(word) ?? [];
    const choice = Object.keys(options).find((name) => name === word || [options[name]?.type].flat().includes(word));
    if (units !== undefined && length !== undefined) {
      const [counted, duration] = rateOptions(options);
      set(counted, Number(units));
      set(duration, /^\d/.test(length) ? length : `1${length}`);
    } else if (/^\d+$/.test(word)) numbers.push(Number(word));
    else if (option !== undefined && value !== undefined) set(option, optionValue(value, options[option]));
    else if (choice !== undefined) set(choice, choice === word ? true : word);
    else throw invalidOption(`${where}: ${JSON.stringify(word)} is neither a rate (100/1m), nor a number, nor an option. ${example}`);
  }
  const open = Object.keys(options).filter((name) => options[name]?.type === "whole number" && !(name in given));
  for (const number of numbers) {
    const option = open.shift();
    if (option === undefined) throw invalidOption(`${where}: ${algorithm} has no option for the number ${number}. ${example}`);
    set(option, number);
  }
  if (!(rateOptions(options)[1] in given)) throw invalidOption(`${where} has no rate. ${example}`);
  return toPolicy(where, { algorithm, ...given });
}

/** What a rate sets: the period, and the number that is counted in it, which stands before it. */
function rateOptions(descriptions: Readonly<Record<string, OptionDescription>>): [string, string] {
  const options = Object.keys(descriptions);
  const at = options.findIndex((name) => descriptions[name]?.type === "duration" && descriptions[name]?.optional !== true);
  return [options[at - 1] as string, options[at] as string];
}

function optionValue(text: string, description: OptionDescription | undefined): unknown {
  if (description?.type === "whole number" && /^\d+$/.test(text)) return Number(text);
  if (description?.type === "flag") return text === "true" ? true : text === "false" ? false : text;
  return text;
}
