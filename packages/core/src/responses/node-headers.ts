import type { Header } from "./headers.js";

/** What is used of Node's own response to set headers: typed by structure, since core runs without Node too. */
export interface HeaderTarget {
  readonly headersSent: boolean;
  getHeader(name: string): number | string | string[] | undefined;
  setHeader(name: string, value: string): unknown;
}

/** Sets the headers of an outcome on Node's own response. Items join a list that is there already. Does nothing once headers are sent. */
export function setHeaders(response: HeaderTarget, headers: readonly Header[]): void {
  if (response.headersSent) return;
  for (const { name, value, list } of headers) {
    const before = list ? response.getHeader(name) : undefined;
    response.setHeader(name, before === undefined ? value : `${before}, ${value}`);
  }
}
