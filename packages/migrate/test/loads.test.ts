import { describe, expect, it } from "vitest";
import { rewritten, todo } from "./rewritten.js";

describe("how a file loads express-rate-limit, and what holds its limits", () => {
  const head = 'import rateLimit from "express-rate-limit";\n';

  it("names several limits after their variables and routes, so that they are told apart", () => {
    const { code } = rewritten(`import { rateLimit } from "express-rate-limit";
const apiLimiter = rateLimit({ limit: 100 });
app.post("/login", rateLimit({ limit: 5 }));
const limiter = rateLimit({ limit: 1000 });
apiLimiter.resetKey("ann");
`);
    expect(code).toBe(`import { rateLimit } from "@floodgate/express";
const apiLimiter = rateLimit({ limit: 100, window: "1m", name: "api", headers: "legacy" });
app.post("/login", rateLimit({ limit: 5, window: "1m", name: "login", headers: "legacy" }));
const limiter = rateLimit({ limit: 1000, window: "1m", headers: "legacy" });
apiLimiter.limiter.reset("ann");
`);
  });

  it("leaves a call of a name that may be another function's", () => {
    const code = `${head}function mount({ rateLimit }) { return rateLimit({ limit: 5 }); }\n`;
    const result = rewritten(code);
    expect(todo(result)).toEqual(["2 `rateLimit` has several "]);
    expect(result.code).toBe(code);
  });

  it.each([
    ['const { rateLimit } = await import("express-rate-limit");', "1 Dynamic imports are not "],
    ['app.use(require("express-rate-limit").ipKeyGenerator);', "1 This `require` is not re"],
    ['const app = make(), limit = require("express-rate-limit");', "1 This `require` is not re"],
    ['module.exports = require("express-rate-limit").default;', "1 This `require` is not re"],
    ['jest.mock("express-rate-limit", () => () => next);', "1 This call names the libr"],
    ['let options: import("express-rate-limit").Options;', "1 Types of an `import()` a"],
  ])("names what loads or mocks the library in another way: %s", (code, message) => {
    expect(todo(rewritten(code))).toEqual([message]);
  });

  it.each([
    ["require('express-rate-limit')", "require('@floodgate/express').rateLimit"],
    ['require("express-rate-limit").rateLimit', 'require("@floodgate/express").rateLimit'],
    ['(await import("express-rate-limit")).default', '(await import("@floodgate/express")).rateLimit'],
  ])("rewrites a limit where the library is loaded: %s", (theirs, ours) => {
    const { code, byHand } = rewritten(`app.use(${theirs}({ max: 5, windowMs: 1000 }));\n`);
    expect(byHand).toEqual([]);
    expect(code).toBe(`app.use(${ours}({ limit: 5, window: "1s", headers: "legacy" }));\n`);
  });

  it("leaves a limit that needs an import where there is no statement for it", () => {
    const code = 'app.use(require("express-rate-limit")({ max: (req) => req.max }));\n';
    const result = rewritten(code);
    expect(todo(result)).toEqual(["1 `slidingWindowCounter` o"]);
    expect(result.code).toBe(code);
  });

  it("leaves the limits of functions that each load the library for themselves", () => {
    const code = `function a() { const limit = require("express-rate-limit"); return limit({ max: 1 }); }
function b() { const { rateLimit } = require("express-rate-limit"); return rateLimit({ max: 2 }); }
`;
    const result = rewritten(code);
    expect(todo(result)).toEqual(["1 This `require` is not re", "2 This `require` is not re"]);
    expect(result.code).toBe(code);
  });

  it.each([
    ["app.js", 'import data from "./data.json" assert { type: "json" };'],
    ["app.js", "@Controller() class A { @Get() list() {} }"],
    ["app.ts", "class A { @State() accessor count = 0; }"],
    ["app.js", 'export routes from "./routes.js";'],
  ])("reads the syntax of Babel and of TypeScript in %s: %s", (file, line) => {
    const { code } = rewritten(`${head}${line}\nrateLimit({ max: 5 });\n`, "express-rate-limit", file);
    expect(code).toContain(`${line}\nrateLimit({ limit: 5,`);
  });

  it("rewrites a limit of `import = require`", () => {
    const { code, byHand } = rewritten('import rateLimit = require("express-rate-limit");\nrateLimit({ max: 5 });\n');
    expect(byHand).toEqual([]);
    expect(code).toContain('import { rateLimit } from "@floodgate/express";\nrateLimit({ limit: 5,');
  });

  it("names limits after what holds them", () => {
    const { code } = rewritten(`${head}exports.login2FALimiter = rateLimit({ max: 5 });
class A { apiLimiter = rateLimit({ max: 5 }); }
const all = { "upload-files": rateLimit({ max: 5 }) };
`);
    expect(code.match(/name: "[^"]*"/g)).toEqual(['name: "login2-fa"', 'name: "api"', 'name: "upload-files"']);
  });

  it("keeps an object of options that others may read", () => {
    for (const declaration of ["export const options = {", "const options: Partial<Options> = {"]) {
      const code = `${head}${declaration} limit: 5 };\nrateLimit(options);\n`;
      expect(rewritten(code).code).toBe(code);
    }
  });
});
