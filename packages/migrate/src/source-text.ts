import type { Comment, Node } from "@babel/types";
import MagicString from "magic-string";

/** The text of a file, with its lines and comments, and the edits of it. */
export class SourceText {
  readonly code: string;
  readonly edits: MagicString;
  /** What ends a line of the file. */
  readonly newline: "\n" | "\r\n";
  readonly #comments: ReadonlyMap<number, Comment>;
  /** How far lines are moved to the left, by their start. */
  readonly #outdents = new Map<number, number>();

  constructor(code: string, comments: readonly Comment[]) {
    this.code = code;
    this.edits = new MagicString(code);
    this.newline = code.includes("\r\n") ? "\r\n" : "\n";
    this.#comments = new Map(comments.map((comment) => [comment.start as number, comment]));
  }

  /** The spaces and tabs that a line begins with. */
  indentAt(position: number): string {
    const line = this.lineStart(position);
    return (/^[ \t]*/.exec(this.code.slice(line))?.[0] ?? "").slice(this.#outdents.get(line) ?? 0);
  }

  /** Leaves a part in place of a node around it, with the comments between them, and with the indent of the node. */
  unwrap(node: Node, part: Node): void {
    const comments = (from: number, to: number): string =>
      [...this.#comments.values()]
        .filter((comment) => from <= (comment.start as number) && (comment.end as number) <= to)
        .map((comment) => ` ${this.text(comment as unknown as Node)}${comment.type === "CommentLine" ? this.newline : ""}`)
        .join("");
    const [from, to] = [start(part), end(part)];
    this.edits.remove(start(node), from).remove(to, end(node));
    this.edits.appendRight(from, comments(start(node), from)).appendLeft(to, comments(to, end(node)));
    const outdent = this.indentAt(to).length - this.indentAt(start(node)).length;
    if (outdent <= 0 || this.text(part).includes("`")) return;
    for (let line = this.code.indexOf("\n", from) + 1; line > 0 && line < to; line = this.code.indexOf("\n", line) + 1) {
      if (this.indentAt(line).length < outdent) continue;
      this.edits.remove(line, line + outdent);
      this.#outdents.set(line, outdent);
    }
  }

  lineStart(position: number): number {
    return Math.max(this.code.lastIndexOf("\n", position - 1), this.code.lastIndexOf("\r", position - 1)) + 1;
  }

  /** The position after a comma, or undefined if something else follows. Comments may stand before it. */
  commaAfter(position: number): number | undefined {
    let at = position;
    for (;;) {
      at += /^\s*/.exec(this.code.slice(at))?.[0].length ?? 0;
      const comment = this.#comments.get(at);
      if (comment === undefined) return this.code[at] === "," ? at + 1 : undefined;
      at = comment.end as number;
    }
  }

  /** The position after the comments that follow on a line; the position itself if none do. */
  afterComments(position: number): number {
    for (let at = position; ; ) {
      const comment = this.#comments.get(this.#afterSpace(at));
      if (comment === undefined) return at;
      at = comment.end as number;
    }
  }

  /** The position after the comments on the rest of a line; undefined if code follows on the line. */
  lineEnd(position: number): number | undefined {
    const at = this.#afterSpace(this.afterComments(position));
    return at === this.code.length || /[\r\n]/.test(this.code[at] ?? "") ? at : undefined;
  }

  #afterSpace(position: number): number {
    return position + (/^[ \t]*/.exec(this.code.slice(position))?.[0].length ?? 0);
  }

  /** The start of the line after a position at the end of a line. */
  nextLine(position: number): number {
    return position + (/^\r?\n?/.exec(this.code.slice(position, position + 2))?.[0].length ?? 0);
  }

  text(node: Node): string {
    return this.code.slice(start(node), end(node));
  }

  replace(node: Node, text: string): void {
    this.edits.overwrite(start(node), end(node), text);
  }
}

/** Whether a node is another one, or a part of it. */
export function isInside(node: Node, outer: Node): boolean {
  return start(outer) <= start(node) && end(node) <= end(outer);
}

export function start(node: Node): number {
  return node.start as number;
}

export function end(node: Node): number {
  return node.end as number;
}
