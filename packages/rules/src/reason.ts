/** What an error says. Some say nothing: they have only a code, or the name of their class. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || (error as NodeJS.ErrnoException).code || error.constructor.name;
}

/** The same, for the end of a sentence. */
export function reasonOf(error: unknown): string {
  return messageOf(error).replace(/\.$/, "");
}
