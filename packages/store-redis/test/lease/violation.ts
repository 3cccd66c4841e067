/** A bound that does not hold. */
export class Violation extends Error {}
