/** The variables of nginx that the directives of Apache's LogFormat stand for. */
const directives: Readonly<Record<string, string>> = {
  h: "$remote_addr",
  a: "$remote_addr",
  l: "$remote_ident",
  u: "$remote_user",
  t: "[$time_local]",
  r: "$request",
  s: "$status",
  b: "$body_bytes_sent",
  B: "$body_bytes_sent",
  m: "$request_method",
  U: "$uri",
  q: "$query_string",
  H: "$server_protocol",
  v: "$host",
  V: "$host",
  p: "$server_port",
  D: "$request_time_us",
  T: "$request_time",
  I: "$request_length",
  O: "$bytes_sent",
  "%": "%",
};

/** Whether a text is written like Apache's LogFormat: `%h %l %u %t \"%r\" %>s %b`. */
export function isApacheFormat(text: string): boolean {
  return !text.includes("$") && /%[<>!,\d]*(?:\{[^}]*\})?\^?[A-Za-z]/.test(text);
}

/** The pattern in nginx's syntax that a LogFormat of Apache stands for. */
export function apachePattern(text: string): string {
  return text
    .replaceAll('\\"', '"')
    .replaceAll("%U%q", "$request_uri")
    .replace(/%[<>!,\d]*(?:\{([^}]*)\})?(\^?[A-Za-z]{1,2}|%)/g, (_, argument: string | undefined, letters: string) => {
      const [letter = "", rest = ""] = letters.startsWith("^") ? [letters] : [letters[0], letters.slice(1)];
      return `${argument === undefined ? (directives[letter] ?? named("apache", letter)) : withArgument(argument, letter)}${rest}`;
    });
}

/** A directive such as `%{User-Agent}i`. */
function withArgument(argument: string, letter: string): string {
  switch (letter) {
    case "i":
      return named("http", argument);
    case "o":
      return named("sent_http", argument);
    case "t":
      return /^(?:begin:|end:)?(?:sec|msec|usec)$/.test(argument) ? "$msec" : "$time_iso8601";
    case "a":
      return argument === "c" ? "$realip_remote_addr" : "$remote_addr";
    case "p":
      return "$server_port";
    case "T":
      return "$request_time";
    default:
      return named("apache", argument);
  }
}

function named(prefix: string, name: string): string {
  return `$${prefix}_${name.toLowerCase().replace(/\W/g, "_")}`;
}
