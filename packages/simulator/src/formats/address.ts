/** The last of a list of forwarded addresses, which the nearest proxy has added. */
export function lastAddress(text: string): string {
  return text.indexOf(",") >= 0 ? text.slice(text.lastIndexOf(",") + 1).trim() : text;
}

/** An address without its port: `1.2.3.4:5678`, `[2001:db8::1]:443`. */
export function withoutPort(text: string): string {
  const [, v4, v6] = /^(?:(\d+\.\d+\.\d+\.\d+):\d+|\[([^\]]*)\](?::\d+)?)$/.exec(text) ?? [];
  return v4 ?? v6 ?? text;
}
