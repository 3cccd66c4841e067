import type { Comment, CommentDisplayPart } from "typedoc";

/** Makes the examples of a docstring, which are indented there, code with a language. */
export function fenceExamples(comment: Comment): void {
  comment.summary = comment.summary.flatMap(fenced);
  for (const tag of comment.blockTags) tag.content = tag.content.flatMap(fenced);
}

function fenced(part: CommentDisplayPart): CommentDisplayPart[] {
  if (part.kind !== "text") return [part];
  const pieces = part.text.split(/(?<=^|\n\n)((?: {4}.*(?:\n|$)|\n(?= {4}))+)/);
  // Every second piece is what the parentheses matched.
  return pieces.map((text, i) =>
    i % 2 === 0 ? { kind: "text", text } : { kind: "code", text: `\`\`\`ts\n${text.replace(/^ {4}/gm, "").trimEnd()}\n\`\`\`\n\n` },
  );
}
