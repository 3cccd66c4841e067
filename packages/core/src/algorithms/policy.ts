import { FloodgateError, shown } from "../support/errors.js";
import { oneOf } from "../support/options.js";
import { type AlgorithmName, algorithms, definitionOf, type Policy } from "./registry.js";

const made = new WeakMap<object, Policy>();

/**
 * Converts a value to a policy: a policy that a factory made, or its options with the name of the algorithm.
 * @throws FloodgateError `FLOODGATE_NO_POLICY` if the value is neither, `FLOODGATE_UNKNOWN_ALGORITHM`, or the error of an invalid option.
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

/** Only factories make frozen objects with a span. */
function isPolicy(value: object): value is Policy {
  return Object.isFrozen(value) && "spanMs" in value && "algorithm" in value;
}

function fromOptions(where: string, options: { algorithm?: unknown }): Policy {
  const names = Object.keys(algorithms) as AlgorithmName[];
  const algorithm = oneOf(where, "algorithm", options.algorithm, names, "FLOODGATE_UNKNOWN_ALGORITHM");
  const { algorithm: _, ...rest } = options;
  return definitionOf({ algorithm }).make(rest);
}
