export { type TestClock, testClock } from "./clock.js";
export { expectLimited, expectNotLimited, type TestedResponse } from "./expect.js";
export { unlimitedStore } from "./unlimited-store.js";
