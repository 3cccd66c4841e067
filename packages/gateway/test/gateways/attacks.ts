import { allRuns } from "../../../../test/runs.js";
import { Client } from "./client.js";
import { limit } from "./stage.js";

/** A request to the host that a rule limits everywhere, as it is written. */
export function raw(target: string, ...lines: readonly string[]): string {
  return [`GET ${target} HTTP/1.1`, "Host: anywhere.example", "Connection: close", ...lines, "", ""].join("\r\n");
}

/** A client that has used up its limit at that host. */
export async function exhaustedClient(port: number): Promise<Client> {
  const client = new Client(port);
  await client.attack([raw("/")], limit, 1);
  return client;
}

const repeated = (line: string, bytes: number): string => line + `\r\n${line}`.repeat(bytes / (line.length + 2));

/** Requests of about so many bytes, which are dear to somebody. */
export const dear = {
  query: (bytes: number) => raw(`/?${"q".repeat(bytes)}`),
  slashes: (bytes: number) => raw("/".repeat(bytes)),
  segments: (bytes: number) => raw("/%2e%2f".repeat(bytes / 7)),
  key: (bytes: number) => raw("/", `X-Api-Key: ${"k".repeat(bytes)}`),
  queryAndKey: (bytes: number) => raw(`/?${"q".repeat(bytes / 2)}`, `X-Api-Key: ${"k".repeat(bytes / 2)}`),
  pathAndKey: (bytes: number) => raw("/".repeat(bytes / 2), `X-Api-Key: ${"k".repeat(bytes / 2)}`),
  otherHeader: (bytes: number) => raw("/", `Cookie: ${"c".repeat(bytes)}`),
  connection: (bytes: number) => raw("/", `Connection: ${"x,".repeat(bytes / 2)}`),
  method: (bytes: number) => raw("/").replace("GET", "G".repeat(bytes)),
  emptyLines: (bytes: number) => raw("/", repeated("a:", bytes)),
  keyLines: (bytes: number) => raw("/", repeated("X-Api-Key: a", bytes)),
  underscoreLines: (bytes: number) => raw("/", repeated("X_Api_Key: a", bytes)),
};

/** `npm test` takes larger steps. */
const larger = allRuns ? 1 : 8;

/** Around the limits of gateways and of the decision server: 8 kB, 16 kB, 32 kB, 64 kB, 1 MB. */
export const sizes: readonly number[] = [
  ...steps(7900, 8300, 16 * larger),
  ...steps(13_800, 16_500, 16 * larger),
  ...steps(31_500, 33_200, 64 * larger),
  ...steps(64_000, 66_000, 64 * larger),
  ...steps(100_000, 1_100_000, 200_000),
];

/** Around the limits of gateways and of the decision server: 100 and 1,000. */
export const numbersOfLines: readonly number[] = [
  ...steps(1, 90, larger),
  ...steps(90, 110, allRuns ? 1 : 2),
  ...steps(110, 130, larger),
  200,
  500,
  ...steps(990, 1010, allRuns ? 1 : 2),
  2000,
];

function steps(from: number, to: number, by: number): number[] {
  return Array.from({ length: Math.ceil((to - from) / by) }, (_, i) => from + i * by);
}
