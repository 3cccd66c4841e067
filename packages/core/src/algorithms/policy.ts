import { FloodgateError, shown } from "../support/errors.js";
import { oneOf } from "../support/options.js";
import { type AlgorithmName, algorithms, definitionOf, type Policy } from "./registry.js";

const made = new WeakMap<object, Policy>();

/**
 * The policy that a value stands for: one made by a factory, or its options with the algorithm's name.
 * @throws FloodgateError with the code of what is wrong.
 */
export function toPolicy(where: string, value: unknown): Policy {
  const uncalled = factoryName(value);
  if (uncalled !== undefined) {
    throw new FloodgateError(
      "FLOODGATE_NO_POLICY",
      `${where}: \`policy\` is ${uncalled} itself, not what it makes. Call it: policy: ${uncalled}({ ... }).`,
    );
  }
  if (typeof value !== "object" || value === null) {
    throw new FloodgateError(
      "FLOODGATE_NO_POLICY",
      `${where}: a policy was expected, but there was ${shown(value)}. Write fixedWindow({ limit: 100, window: "1m" }), say; a policy function must answer one for every request.`,
    );
  }
  const known = made.get(value);
  if (known !== undefined) return known;
  const policy = isPolicy(value) ? value : fromOptions(where, value as { algorithm?: unknown });
  made.set(value, policy);
  return policy;
}

/** The name of a policy factory; undefined for anything else. */
export function factoryName(value: unknown): string | undefined {
  const algorithm = Object.entries(algorithms).find(([, { make }]) => make === value)?.[0];
  return algorithm?.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** Factories freeze what they make and give it a span; nothing else has one. */
function isPolicy(value: object): value is Policy {
  return Object.isFrozen(value) && "spanMs" in value && "algorithm" in value;
}

function fromOptions(where: string, options: { algorithm?: unknown }): Policy {
  const names = Object.keys(algorithms) as AlgorithmName[];
  const algorithm = oneOf(where, "algorithm", options.algorithm, names, "FLOODGATE_UNKNOWN_ALGORITHM");
  const { algorithm: _, ...rest } = options;
  return definitionOf({ algorithm }).make(rest);
}
