import { z } from "zod";
import { shownValue } from "../config/problems.js";
import { type Mistake, Problem } from "./problems.js";

/** The most bytes of a body. */
export const maxBytes = 131_072;

/**
 * Reads a request's body as JSON.
 * @throws Problem 413, 415 or 400.
 */
export async function readJson(request: Request): Promise<unknown> {
  const type = request.headers.get("content-type") ?? "";
  if (!/^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i.test(type)) {
    throw new Problem(
      415,
      "unsupported-media-type",
      `The body must be JSON in UTF-8, but its type was ${shownValue(type)}. Write Content-Type: application/json.`,
    );
  }
  const bytes = await readBytes(request);
  let text: string;
  let value: unknown;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    value = JSON.parse(text);
  } catch (error) {
    const reason = error instanceof SyntaxError ? error.message : "it is not UTF-8";
    throw new Problem(400, "invalid-json", `The body is no valid JSON: ${reason}.`);
  }
  const twice = duplicateName(text);
  if (twice !== undefined) {
    throw new Problem(400, "duplicate-name", `The body has the name ${shownValue(twice)} twice in one object. Write it once.`);
  }
  return value;
}

async function readBytes(request: Request): Promise<Uint8Array> {
  const tooLarge = (): Problem =>
    new Problem(413, "body-too-large", `The body has more than ${maxBytes} bytes. Send less.`, { headers: { Connection: "close" } });
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) throw tooLarge();
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of request.body ?? []) {
      size += (chunk as Uint8Array).byteLength;
      if (size > maxBytes) break;
      chunks.push(chunk as Uint8Array);
    }
  } catch {
    // The client has left, and nobody reads this.
    throw new Problem(400, "incomplete-body", "The connection ended before the body was complete.");
  }
  if (size > maxBytes) throw tooLarge();
  return Buffer.concat(chunks);
}

/** No body of the API is deeper than a few levels. */
const maxLevels = 64;

/**
 * The first name that an object of a valid JSON text has twice. Parsers disagree on which of the two counts.
 * @throws Problem 400 if objects and lists are nested too deeply for code that descends into them.
 */
export function duplicateName(text: string): string | undefined {
  const objects: (Set<string> | undefined)[] = [];
  const colon = /\s*:/y;
  for (const { 0: token, index } of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]]/g)) {
    if (token === "{" || token === "[") {
      objects.push(token === "{" ? new Set() : undefined);
      if (objects.length <= maxLevels) continue;
      throw new Problem(400, "too-deep", `The body has objects and lists in more than ${maxLevels} levels. Send fewer.`);
    }
    if (token === "}" || token === "]") objects.pop();
    else {
      const names = objects.at(-1);
      colon.lastIndex = index + token.length;
      if (names === undefined || !colon.test(text)) continue;
      const name = JSON.parse(token) as string;
      if (names.has(name)) return name;
      names.add(name);
    }
  }
  return undefined;
}

/**
 * Checks a body by its schema.
 * @throws Problem 400 that names each mistake.
 */
export function checked<Schema extends z.ZodType>(schema: Schema, value: unknown, example: string): z.output<Schema> {
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  const mistakes = error.issues.slice(0, 20).flatMap((issue) => mistakesOf(issue, value));
  const [first] = mistakes as [Mistake];
  const more = mistakes.length > 1 ? ` (and ${mistakes.length - 1} more)` : "";
  throw new Problem(400, "invalid-body", `${first.message}${more} Write, for example: ${example}`, { mistakes });
}

function mistakesOf(issue: z.core.$ZodIssue, body: unknown): Mistake[] {
  const at = z.core.toDotPath(issue.path);
  const subject = at === "" ? "The body" : `\`${at}\``;
  if (issue.code === "unrecognized_keys") {
    return issue.keys.slice(0, 10).map((name) => {
      return { at: z.core.toDotPath([...issue.path, name]), message: `${subject} has an unknown field ${shownValue(name)}. Remove it.` };
    });
  }
  const value = issue.path.reduce<unknown>((inner, part) => (inner as Record<PropertyKey, unknown> | null | undefined)?.[part], body);
  if (value === undefined) return [{ at, message: `${subject} is missing. It must be ${issue.message}.` }];
  const what = issue.code === "invalid_key" ? "a map with valid names" : issue.message;
  return [{ at, message: `${subject} must be ${what}, but was ${shownValue(value)}.` }];
}
