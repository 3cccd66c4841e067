/** Describes one option of a policy, for rules files, their schema and the docs. */
export interface OptionDescription {
  /** A whole number of at least `least`, a duration, true or false, any text, or one of a few words and numbers. */
  readonly type: "whole number" | "duration" | "flag" | "text" | readonly (string | number)[];
  /** The smallest whole number that is allowed. Default 1. */
  readonly least?: number;
  /** An example of the value, as a rules file writes it. */
  readonly example: string;
  readonly description: string;
  /** Whether the option may be left out. */
  readonly optional?: true;
}

/** A description for every option. */
export type OptionDescriptions<Options> = { readonly [Option in keyof Options]-?: OptionDescription };

// Options that several algorithms share.

export const limitOption: OptionDescription = {
  type: "whole number",
  least: 0,
  example: "100",
  description: "The maximum number of units in a window. 0 rejects every request.",
};

export const windowOption: OptionDescription = { type: "duration", example: "1m", description: "The length of a window." };

export const capacityOption: OptionDescription = {
  type: "whole number",
  least: 0,
  example: "20",
  description: "The maximum number of tokens in the bucket, or of requests in the queue. 0 rejects every request.",
};

export const everyOption: OptionDescription = { type: "duration", example: "1s", description: "The period of `refill` or `leak`." };
