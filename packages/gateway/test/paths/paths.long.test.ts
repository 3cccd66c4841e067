import { randomInt } from "node:crypto";
import { vi } from "vitest";
import { describePaths } from "./differential.js";

vi.setConfig({ testTimeout: 900_000 });
describePaths(10_000, randomInt(2 ** 31));
