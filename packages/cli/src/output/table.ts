import { table as columns } from "@floodgate/simulator";
import { type Io, paint } from "../io.js";

/** Formats rows under headings, in aligned columns. */
export function table(io: Io, headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const named = headings.map((heading) => ({ heading }));
  return columns((format, text) => paint(io, format, text), named, rows);
}
