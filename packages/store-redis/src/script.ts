import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Twin, twins } from "./algorithms.js";

const lua = (name: string): string => readFileSync(join(__dirname, "..", "lua", `${name}.lua`), "utf8");

/** Wrapped in branches, so that a run creates only the algorithms that it uses: creating all costs more than a decision. */
const branches = twins.map((twin, i) => `${i === 0 ? "" : "else"}if number == ${i + 1} then\n${branch(twin)}`).join("");

/**
 * A twin between the names that tie it to core's algorithm: `policy` has a field for each parameter, and each cell's name is a constant,
 * its place in a returned state (`START` for `start`). A name that core does not have is an error in Lua.
 */
function branch({ name, parameters, cells }: Twin): string {
  const fields = parameters.map((parameter, i) => `${parameter} = tonumber(ARGV[at + ${i + 1}])`);
  return `local policy = { ${fields.join(", ")}, decide = false, settle = false }
local ${cells.map((cell) => cell.toUpperCase()).join(", ")} = ${cells.map((_, i) => i + 1).join(", ")}
${lua(name)}
policy.decide, policy.settle = decide, settle
return policy, ${parameters.length}
`;
}

/** The whole script: prelude, algorithms, batch. */
export const source: string = `${lua("prelude")}
-- Returns the policy whose arguments begin at an index of ARGV, and how many parameters it has.
local function policy_at(at)
local number = tonumber(ARGV[at])
${branches}end
end

${lua("batch")}`;

/** The hash for EVALSHA. */
export const sha: string = createHash("sha1").update(source).digest("hex");
