import { expect, test } from "vitest";
import { gcra } from "../../src/index.js";
import { compilePlans } from "../../src/rules.js";

test.each([
  [undefined, 1000],
  [9, 9],
  [10, 10],
  [11, 11],
])("of a limit of 10 with the burst %s, a plan of 1000 lets %s in at once: a burst that was given stays", (burst, atOnce) => {
  const policy = gcra({ limit: 10, window: "1m", ...(burst !== undefined && { burst }) });
  const plans = compilePlans("rule", { pro: { limit: 1000 }, calm: { limit: 1000, burst: 5 } }, policy);
  expect([...plans].map(([name, { quota }]) => [name, quota])).toEqual([
    ["pro", atOnce],
    ["calm", 5],
  ]);
});
