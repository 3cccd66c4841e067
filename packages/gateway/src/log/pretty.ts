/** Formats a line of JSON for people: `12:00:01 WARN  Redis does not answer  redis=127.0.0.1:6379`. */
export function prettyLine(json: string): string {
  const { level, time, message, err, ...rest } = JSON.parse(json) as Record<string, unknown>;
  const fields = Object.entries(rest).map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  const failure = (err as { message?: unknown } | undefined)?.message;
  const text = [message, failure && `(${failure})`].filter(Boolean).join(" ");
  const line = [`${time}`.slice(11, 19), `${level}`.toUpperCase().padEnd(5), [text, ...fields].join("  ")].join(" ");
  return `${withoutControls(line)}\n`;
}

/** A message may have several lines, such as the problems of a rules file. Later lines are indented, so that none can pass for a log line. */
function withoutControls(text: string): string {
  return text
    .split(/\r?\n/)
    .map((line) => line.replace(/[^\t\P{C}]/gu, "\u{fffd}"))
    .join("\n    ");
}
