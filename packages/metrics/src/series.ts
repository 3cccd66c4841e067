import { warnOnce } from "@floodgate/core/rules";
import type { AttributeName, Instrument } from "./instruments.js";

/** The attributes of one series. Each series has one object, which lives as long as the series. */
export type Attributes = Readonly<Partial<Record<AttributeName, string>>>;

function attributesOf({ attributes }: Instrument, values: readonly string[]): Attributes {
  return Object.freeze(Object.fromEntries(attributes.map((name, i) => [name, values[i]])));
}

/** A number with one set of attributes. */
export interface Total {
  readonly attributes: Attributes;
  value: number;
}

/** A histogram with one set of attributes. */
export type Recorder = (value: number) => void;

/** The series of one instrument, by the values of its attributes. A series begins when it is first asked for. */
export class SeriesOf<Series> {
  readonly #instrument: Instrument;
  readonly #make: (attributes: Attributes) => Series;
  readonly #series = new Map<string, Series>();

  constructor(instrument: Instrument, make: (attributes: Attributes) => Series) {
    this.#instrument = instrument;
    this.#make = make;
  }

  with(...values: string[]): Series {
    // No value has a line break: names are printable ASCII, and all else is a word of ours.
    const key = values.join("\n");
    let series = this.#series.get(key);
    if (series === undefined) {
      series = this.#make(attributesOf(this.#instrument, values));
      this.#series.set(key, series);
    }
    return series;
  }

  all(): Iterable<Series> {
    return this.#series.values();
  }
}

/** The rule of names above the cap. */
const otherRule = "other";

/**
 * Makes a function that finds the rule of a name. The number of rules is capped, so that names made of user input do not make a series for
 * each user.
 */
export function rulesByName<Rule>(most: number, make: (name: string) => Rule): (name: string) => Rule {
  const rules = new Map<string, Rule>();
  let other: Rule | undefined;
  // The last look-up: the events of a decision and of its request have one name.
  let lastName: string | undefined;
  let last: Rule | undefined;
  const add = (name: string): Rule => {
    if (rules.size >= most) {
      warnOnce(
        "FLOODGATE_TOO_MANY_RULES",
        `Metrics tell ${most} rules apart, and there are more. All others are measured together, as rule="${otherRule}". If names of limiters are made of user input, put that into the key instead; else set \`maxRules\`.`,
      );
      other ??= make(otherRule);
      return other;
    }
    const rule = make(name);
    rules.set(name, rule);
    return rule;
  };
  return (name) => {
    if (name !== lastName) {
      last = rules.get(name) ?? add(name);
      lastName = name;
    }
    return last as Rule;
  };
}
