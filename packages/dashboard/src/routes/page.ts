/// <reference path="../../../../texts.d.ts" />
import { randomBytes } from "node:crypto";
import page from "../../dist/page.html";
import { pageHeaders } from "../safety/headers.js";
import type { Reply } from "./view.js";

const markup: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** The page, which the build has made of `src/page`. Nothing in it comes from the request. */
export function pageReply(title: string): Reply {
  const nonce = randomBytes(16).toString("base64");
  const filled: Readonly<Record<string, string>> = {
    "{{title}}": title.replace(/[&<>"']/g, (character) => markup[character] as string),
    "{{nonce}}": nonce,
  };
  const body = page.replace(/\{\{(?:title|nonce)\}\}/g, (place) => filled[place] as string);
  return { status: 200, headers: pageHeaders(nonce), body };
}
