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
      const variable = argument === undefined ? directives[letter] : withArgument[letter]?.(argument);
      return `${variable ?? named("apache", argument ?? letter)}${rest}`;
    });
}

/** What a directive with an argument stands for, such as `%{User-Agent}i`. */
const withArgument: Readonly<Record<string, (argument: string) => string>> = {
  i: (name) => named("http", name),
  o: (name) => named("sent_http", name),
  t: (format) => (/^(?:begin:|end:)?(?:sec|msec|usec)$/.test(format) ? "$msec" : "$time_iso8601"),
  a: (peer) => (peer === "c" ? "$realip_remote_addr" : "$remote_addr"),
  p: () => "$server_port",
  T: () => "$request_time",
};

function named(prefix: string, name: string): string {
  return `$${prefix}_${name.toLowerCase().replace(/\W/g, "_")}`;
}
