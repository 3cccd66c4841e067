/** `npm run test:long` sets it. */
export const allRuns: boolean = process.env["ALL_RUNS"] === "1";

/** `RUN_SECONDS=20` gives each property as many random runs as fit into 20 seconds: a search for what fails once in ten thousand runs. */
const limitMs = 1000 * Number(process.env["RUN_SECONDS"] ?? 0);

/** How many random runs a property gets: an eighth in `npm test`, all in `npm run test:long`. */
export const runs = (all: number): { numRuns: number; interruptAfterTimeLimit?: number } =>
  limitMs > 0 ? { numRuns: Number.POSITIVE_INFINITY, interruptAfterTimeLimit: limitMs } : { numRuns: allRuns ? all : Math.ceil(all / 8) };
