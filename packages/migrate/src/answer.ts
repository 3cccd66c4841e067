import type { Node } from "@babel/types";
import { entryOf, type FunctionNode, isFunction, isMember, parameterName, propertyName, references, some, walk } from "./nodes.js";
import type { Option, Options } from "./options.js";
import type { Rewriting } from "./rewriting.js";
import type { Source } from "./source.js";
import { end } from "./source-text.js";

// What a rejected request is answered: `message`, `statusCode` and `handler`.

/** Code for `body`, or for a call that sends it. Undefined if it is a function. */
export function messageCode({ value, code }: Option): string | undefined {
  return isFunction(value) ? undefined : code;
}

/** What a library answers with, if it is not what `body` sends. */
export interface OtherAnswer {
  readonly message: Option | undefined;
  /** The code of the message; undefined if it is a function. */
  readonly text: string | undefined;
  /** The code of the status; undefined if it is 429. */
  readonly status: string | undefined;
}

const defaultMessage = JSON.stringify("Too many requests, please try again later.");

/**
 * `message`, `statusCode` and `handler` become `body` or `onLimited`.
 * @param parameters the parameters of `handler` that `onLimited` has too. `next` and the options come after them.
 * @param send the code of `onLimited`; undefined if it is left to do by hand.
 * @param numbers what a `handler` may read of the options, as far as it is constant.
 */
export function rewriteAnswer(
  { source }: Rewriting,
  options: Options,
  parameters: readonly string[],
  send: (answer: OtherAnswer) => string | undefined,
  numbers: Readonly<Record<string, unknown>> = {},
): void {
  const [message, statusCode, handler] = [options.take("message"), options.take("statusCode"), options.take("handler")];
  const text = message === undefined ? defaultMessage : messageCode(message);
  const status = statusCode === undefined ? 429 : statusCode.constant;
  if (handler !== undefined) {
    const isOperand = message === undefined || /Literal$|^Identifier|^Member|^Object/.test(message.value.type);
    const values: [string, unknown][] = Object.entries({ ...numbers, statusCode: status }).filter(([, value]) => typeof value === "number");
    if (text !== undefined) values.push(["message", isOperand ? text : `(${text})`]);
    rewriteHandler(source, handler, parameters, Object.fromEntries(values.map(([name, value]) => [name, `${value}`])));
    options.remove(message, statusCode);
  } else if (status === 429 && text !== undefined) {
    message?.rename("body");
    options.remove(statusCode);
  } else {
    const other = status === 429 ? undefined : statusCode;
    const code = send({ message, text, status: other?.code });
    if (code === undefined) message?.handle(`Write \`onLimited: async (${parameters.join(", ")}) => ...\`, which sends the answer.`);
    else options.put(`onLimited: ${code}`, other, message, other === undefined ? statusCode : undefined);
  }
}

/** `handler` becomes `onLimited`, with the values of the options that are known in it. */
function rewriteHandler(source: Source, handler: Option, parameters: readonly string[], values: Readonly<Record<string, string>>): void {
  const kept = parameters.length;
  const { function: known } = handler;
  handler.rename("onLimited");
  if (known !== undefined && !setsStatus(source, known.body))
    handler.note("A `handler` that sets no status answers 200. `onLimited` answers 429, unless it sets another one.");
  const next = known && parameterName(known, kept);
  const usesNext = known !== undefined && next !== undefined && references(known.body, next).length > 0;
  const canInline = known === handler.value && !usesNext;
  if (known !== undefined && canInline && inlineOptions(source, known, kept + 1, values)) {
    if (known.params.length > kept) source.edits.remove(end(known.params[kept - 1] as Node), end(known.params.at(-1) as Node));
  } else if (known === undefined || known.params.length > kept) {
    handler.handle(
      `\`onLimited\` gets (${[...parameters, "decision"].join(", ")}), and neither \`next\` nor the options. Rewrite what uses them.`,
    );
  }
}

/** Whether the answers of a handler seem to have a status of their own. */
function setsStatus(source: Source, body: Node): boolean {
  const code = source.text(body);
  if (/\.(s|sendS)tatus|writeHead|throw/.test(code)) return true;
  if (/\.redirect\(/.test(code) && !/\.(json|send|render|end)\(/.test(code)) return true;
  const isStatus = (node: Node): boolean => node.type === "NumericLiteral" && node.value >= 100 && node.value < 600;
  return some(body, (node) => node.type === "CallExpression" && node.arguments.some(isStatus));
}

/** Replaces `options.statusCode`, `options.message` and the like in a handler. @returns whether nothing else of the options is used. */
function inlineOptions(source: Source, node: FunctionNode, index: number, values: Readonly<Record<string, string>>): boolean {
  const name = parameterName(node, index);
  if (name === undefined) return node.params.length <= index;
  const members: [Node, string][] = [];
  let others = references(node.body, name).length;
  walk(node.body, (inner) => {
    const property = propertyName(inner);
    const value = property === undefined ? undefined : entryOf(values, property);
    if (value === undefined || !isMember(inner)) return;
    if (inner.object.type !== "Identifier" || inner.object.name !== name) return;
    members.push([inner, value]);
    others--;
  });
  if (others > 0) return false;
  for (const [member, value] of members) source.replace(member, value);
  return true;
}
