/** `npm run test:long` sets it. */
export const allRuns: boolean = process.env["ALL_RUNS"] === "1";

/** How many random runs a property gets: an eighth in `npm test`, all in `npm run test:long`. */
export const runs = (all: number): { numRuns: number } => ({ numRuns: allRuns ? all : Math.ceil(all / 8) });
