import { describePaths } from "./differential.js";

describePaths(50, 20_261_122);
