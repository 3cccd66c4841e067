export { exitCodes } from "./failure.js";
export { type Io, processIo } from "./io.js";
export { run } from "./run.js";
