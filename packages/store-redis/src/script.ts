import { nodeCrypto } from "@floodgate/core/store";
import { type AlgorithmArguments, type Twin, twins } from "./algorithms.js";
import { lua as texts } from "./lua.js";
import { Templates } from "./templates.js";

/** A Lua script. */
export interface Script {
  readonly source: string;
  /** The hash for EVALSHA. Without `node:crypto` it is the source, whose hash the client finds out: Web Crypto is asynchronous. */
  readonly sha: string;
}

const crypto = nodeCrypto();
const lua = (name: string): string => texts[name] as string;

/** A limit in lean scripts. */
export interface LeanLimit extends Pick<AlgorithmArguments, "number" | "parameters"> {
  /** The length of the last part of its keys. */
  readonly kindSize: number;
}

/** The decisions of lua/lean.lua, by an algorithm's number, with `INDEX`, `VALUE` and `PARAMETERS` in place of what differs. */
const leanDecisions: string[] = [];
/** A lean script without its decisions. */
let leanFrame: string | undefined;

/**
 * The script of one request alone under these limits, with all functions inlined.
 * @param isWhole whether it is a consumeAll: then its reply begins with whether all limits were charged.
 * @param wantsState whether rejections return their state.
 */
export function leanScript(limits: readonly LeanLimit[], isWhole: boolean, wantsState: boolean): Script {
  const values = limits.map(({ kindSize }, i) => `sub(KEYS[${i + 1}], 1, ${-1 - kindSize}) .. 'blocks'`);
  let edgeAt = limits.length + 3;
  const decisions = limits.map(({ number, parameters }, i) => {
    const twin = twins[number - 1] as Twin;
    // A log reads its own parts.
    const value = twin.name === "sliding-window-log" ? "nil" : `values[${values.push(`KEYS[${i + 1}]`)}]`;
    // Edges change, so they are arguments: see lua/lean.lua.
    const edges = twin.edges === undefined ? [] : edgeNames.map(() => `tonumber(ARGV[${edgeAt++}])`);
    leanDecisions[number] ??= leanDecision(twin);
    return leanDecisions[number]
      .replace("INDEX", String(i + 1))
      .replace("VALUE", value)
      .replace("PARAMETERS", [...parameters, ...edges].join(", "));
  });
  leanFrame ??= leanSource();
  const constants = `wants_state = ${wantsState}\nlocal is_whole = ${isWhole}\n`;
  const source = leanFrame.replace("CONSTANTS\n", constants).replace("VALUES", values.join(", "));
  return scriptOf(stripped(source.replace("DECISIONS\n", () => decisions.join(""))));
}

/** The names of a calendar window's edges in Lua. */
const edgeNames = ["edge_1", "edge_2", "edge_3", "edge_4"];

/** The script of several steps, or of one step that is not a consume. */
export const general: Script = scriptOf(stripped(generalSource()));

/** The commands of the scripts, in the order of the alphabet. A restricted user needs each of them. */
export const commands: readonly string[] = [
  ...new Set([...general.source.matchAll(/call\('([A-Z]+)'/g)].map(([, name]) => name as string)),
].sort();

/** Returns those of the commands in ARGV that the user may not run on a key. Servers before Redis 7 do not say. */
export const permissions: Script = scriptOf(
  stripped(`local missing = {}
for i = 1, #ARGV do
if redis.acl_check_cmd and not redis.acl_check_cmd(ARGV[i], KEYS[1]) then missing[#missing + 1] = ARGV[i] end
end
return missing
`),
);

function leanSource(): string {
  const { templates, prelude } = partsOf();
  return `${prelude}CONSTANTS\n${templates.inline(lua("lean"))}`;
}

function leanDecision(twin: Twin): string {
  const { templates, constants } = partsOf(twin);
  templates.take(lua("lean-limit"));
  return `do\n${namesOf(twin, "PARAMETERS")}${constants}${templates.inline("decide_limit(INDEX, VALUE)\n")}end\n`;
}

/**
 * Each algorithm stands in a branch, so that a run creates only the functions that it uses. `settle` is created when a step settles.
 */
function generalSource(): string {
  const branches = (functionName: string): string =>
    twins
      .map((twin, i) => {
        const { templates, constants } = partsOf(twin);
        const parameters = parametersOf(twin);
        const names = namesOf(twin, parameters.map((_, i) => `tonumber(ARGV[at + ${i + 1}])`).join(", "));
        return `${i === 0 ? "" : "else"}if number == '${i + 1}' then\n${names}${constants}return ${templates.functionOf(functionName)}, ${parameters.length}\n`;
      })
      .join("");
  const { templates, prelude } = partsOf();
  return `${prelude}
-- Return the function of the policy whose arguments begin at an index of ARGV, and how many parameters it has.
local function decide_at(at)
local number = ARGV[at]
${branches("decide")}end
end
${templates.inline(lua("batch").replace("HOLDING\n", () => lua("holding")) + lua("blocks"))}local function changes()
local function settle_at(at)
local number = ARGV[at]
${branches("settle")}end
end
${templates.inline(lua("charges"))}return change_charge, end_lease, block, write_block, reset, append_change
end
${templates.inline(lua("steps"))}`;
}

/**
 * A twin between the names that tie it to core's algorithm: each parameter is a variable, and so is each cell's place in a returned state
 * (`START` for `start`). A name that core does not have is an error in Lua.
 */
function namesOf(twin: Twin, values: string): string {
  return `local ${parametersOf(twin).join(", ")} = ${values}
local ${placesOf(twin.cells).join(", ")} = ${twin.cells.map((_, i) => i + 1).join(", ")}
`;
}

/** The names of what a twin computes with: a policy's parameters and, of a calendar window, the edges. */
function parametersOf({ parameters, edges }: Twin): readonly string[] {
  return edges === undefined ? parameters : [...parameters, ...edgeNames];
}

function placesOf(cells: readonly string[]): string[] {
  return cells.map((cell) => cell.toUpperCase());
}

/** The parts of a script: the templates of a twin and those that all share, the prelude, and the twin's constants. */
function partsOf(twin?: Twin): { readonly templates: Templates; readonly prelude: string; readonly constants: string } {
  const templates = new Templates();
  const prelude = templates.take(lua("prelude"));
  for (const name of ["values", "debts", "shared-bucket", "held-units"]) templates.take(lua(name));
  // Twins with a `decide` and a `settle` of their own replace these.
  if (twin !== undefined) templates.take(lua("windows"));
  const constants = twin === undefined ? "" : templates.take(lua(twin.name));
  return { templates, prelude, constants };
}

/** Leaves out comments, and names of Lua's library that the script does not use: each costs a lookup. */
function stripped(text: string): string {
  let source = text.replace(/^ *--.*\n|^\n/gm, "");
  for (const [line, name] of source.matchAll(/^local (\w+) = [\w.]+\n/gm)) {
    if (!new RegExp(`(?<![.\\w])${name}\\b`).test(source.replace(line, ""))) source = source.replace(line, "");
  }
  return source;
}

function scriptOf(source: string): Script {
  return { source, sha: crypto?.createHash("sha1").update(source).digest("hex") ?? source };
}
