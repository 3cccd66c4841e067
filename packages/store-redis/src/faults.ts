import { FloodgateError } from "@floodgate/core/store";

export function timeout(timeoutMs: number): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_STORE_TIMEOUT",
    `Redis did not answer within ${Math.round(timeoutMs)} ms. If it has not decided, it charges nothing. Check its latency and connection, or raise \`timeoutMs\`.`,
  );
}

/** The request timed out in this process's queue. Redis answered others meanwhile, so this is not a store error. */
export function queueTimeout(timeoutMs: number): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_QUEUE_TIMEOUT",
    `The request waited ${Math.round(timeoutMs)} ms behind others that Redis answered, and was not sent. Nothing was charged. Reduce the load of this process, or raise \`timeoutMs\`.`,
  );
}

/** A Cluster was moving the keys of the request to another server. Both servers answer, so this is not a store error. */
export function movingTimeout(timeoutMs: number): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_QUEUE_TIMEOUT",
    `The request waited ${Math.round(timeoutMs)} ms for its keys, which Redis moves to another server. Nothing was charged. Try again later, or raise \`timeoutMs\`.`,
  );
}

/**
 * Whether Redis says that keys are moving between two servers of a Cluster: a command with several keys, or a script that deletes a key and
 * uses it again. GLIDE follows no redirection after it.
 */
export function isMoving(text: string): boolean {
  return /^TRYAGAIN|- (TryAgain|Moved)|a non local key/.test(text);
}

/** A whole batch failed in Redis or its client. */
export function fault(cause: unknown): FloodgateError {
  const text = cause instanceof Error ? cause.message : String(cause);
  return notDecided("", text, { cause });
}

function notDecided(forKey: string, text: string, options?: ErrorOptions): FloodgateError {
  const advice = adviceFor(text);
  const line = `Redis could not decide${forKey}: ${oneLine(text)}`;
  return new FloodgateError("FLOODGATE_STORE_FAULT", advice === "" ? line : `${line.replace(/\.$/, "")}. ${advice}`, options);
}

/** What to do about an error of the server, if it is known. Valkey 9 names a command that the user may not run in scripts too. */
function adviceFor(text: string): string {
  const [denied, command] = /(?:NOPERM|ACL failure).*?(?:'(\w+)' command|\bkeys?\b)/.exec(text) ?? [];
  if (denied !== undefined) return allow(command === undefined ? "~<prefix>:*" : `+${command}`);
  if (/unknown (redis )?command/i.test(text)) {
    return "The server must have each command that docs/redis.md lists, under its own name (no `rename-command`).";
  }
  return text.includes("READONLY") ? "Connect to the master, and anew after a failover. See docs/redis.md." : "";
}

/** One step of a batch failed. */
export function stepFault(text: string, key: string): FloodgateError {
  if (text.includes("WRONGTYPE")) {
    return new FloodgateError(
      "FLOODGATE_FOREIGN_VALUE",
      `The Redis key ${JSON.stringify(key)} holds a value of another type. Floodgate does not overwrite it. Delete it (the limiter's \`reset\` does), or give redisStore another \`prefix\`.`,
    );
  }
  return notDecided(` for the key ${JSON.stringify(key)}`, text);
}

/** Whether Redis says that its user lacks a permission, but not which one. */
export function isNameless(text: string): boolean {
  return text.includes("The user executing the script");
}

/**
 * The Redis user lacks permissions.
 * @param missing the commands that it may not run; all of them if it may not use the key; empty if the server does not say.
 */
export function forbidden(missing: readonly string[], all: readonly string[], key: string): FloodgateError {
  const isKey = missing.length === all.length;
  const isUnknown = missing.length === 0;
  const use = `use the key ${JSON.stringify(key)}`;
  const what = isUnknown ? `run a command of its scripts, or ${use}` : isKey ? use : `run ${missing.join(", ")}`;
  const names = isUnknown ? all : missing;
  const advice = isKey ? "~<prefix>:*" : names.map((name) => `+${name.toLowerCase()}`).join(" ");
  return new FloodgateError("FLOODGATE_STORE_FAULT", `Redis could not decide: its user may not ${what}. ${allow(advice)}`);
}

function allow(rules: string): string {
  return `Allow it: ACL SETUSER <user> ${rules}. See docs/redis.md.`;
}

/** A server's message on one line, at most 400 characters. */
function oneLine(text: string): string {
  return (text.length > 400 ? `${text.slice(0, 397)}...` : text).replace(/\s+/g, " ");
}
