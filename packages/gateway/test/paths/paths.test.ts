import { describePaths } from "./differential.js";

describePaths(400, 20_261_122);
