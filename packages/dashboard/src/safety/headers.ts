type Headers = readonly (readonly [name: string, value: string])[];

const always: Headers = [
  ["Cache-Control", "no-store, no-transform"],
  ["X-Content-Type-Options", "nosniff"],
  ["X-Frame-Options", "DENY"],
  ["Referrer-Policy", "same-origin"],
  ["Cross-Origin-Opener-Policy", "same-origin"],
  ["Cross-Origin-Resource-Policy", "same-origin"],
  ["X-Robots-Tag", "noindex, nofollow"],
];

/** Forbids everything that the page does not need. Scripts and styles run only with the nonce of this answer. */
export function pageHeaders(nonce: string): Headers {
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
  return [...headersFor("text/html; charset=utf-8", policy), ["Cross-Origin-Embedder-Policy", "require-corp"]];
}

export function headersFor(contentType: string, policy = "default-src 'none'; frame-ancestors 'none'"): Headers {
  return [["Content-Type", contentType], ...always, ["Content-Security-Policy", policy]];
}
