/**
 * The addresses in a `Forwarded` header (RFC 7239), as a list like `X-Forwarded-For`. An element without an address (`for=unknown`,
 * `for=_hidden`, a syntax error) stays in the list as a text that is no address, so that no address further left is believed.
 */
export function forwardedList(value: string): string {
  return elements(value).map(addressOf).join(",");
}

/** Splits at commas outside of quotes. After a quote that never closes, all is one element. */
function elements(value: string): string[] {
  const found: string[] = [];
  let start = 0;
  let quoted = false;
  for (let i = 0; i < value.length; i++) {
    const character = value[i];
    if (quoted) {
      if (character === "\\") i++;
      else if (character === '"') quoted = false;
    } else if (character === '"') quoted = true;
    else if (character === ",") {
      found.push(value.slice(start, i));
      start = i + 1;
    }
  }
  found.push(value.slice(start));
  return found;
}

const invalid = "unknown";

function addressOf(element: string): string {
  let address: string | undefined;
  for (const pair of element.split(";")) {
    const [, name = "", plain, quoted] = /^\s*([\w-]+)=(?:([^\s";,=]*)|"([^"\\,;]*)")\s*$/.exec(pair) ?? [];
    if (name.toLowerCase() !== "for") continue;
    // Twice in one element is an error.
    if (address !== undefined) return invalid;
    address = plain ?? quoted ?? invalid;
  }
  return address === undefined || address === "" ? invalid : address;
}
