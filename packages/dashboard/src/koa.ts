export { results } from "./contract.js";
