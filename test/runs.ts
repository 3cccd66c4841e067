/** `npm run test:long` sets it. */
export const allRuns: boolean = process.env["ALL_RUNS"] === "1";

/** `RUN_SECONDS=20` gives each property as many random runs as fit into 20 seconds: a search for what fails once in ten thousand runs. */
export const limitMs: number = 1000 * Number(process.env["RUN_SECONDS"] ?? 0);

/** How many random runs a property gets: an eighth in `npm test`, all in `npm run test:long`. */
export const runs = (all: number): { numRuns: number } => ({
  numRuns: limitMs > 0 ? Number.POSITIVE_INFINITY : allRuns ? all : Math.ceil(all / 8),
});
