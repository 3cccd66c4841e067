import { describePaths } from "./differential.js";

describePaths(150, 20_261_122);
