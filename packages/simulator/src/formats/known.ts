import { checkOptions, didYouMean, invalidOption } from "@floodgate/core/rules";
import { apachePattern, isApacheFormat } from "./apache.js";
import { type JsonFields, JsonFormat } from "./json-lines.js";
import type { LogFormat } from "./log-format.js";
import { PatternFormat } from "./pattern.js";
import { cloudfrontColumns, W3cFormat } from "./w3c.js";

const common = '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent';
const combined = `${common} "$http_referer" "$http_user_agent"`;

const envoyStart = '[$time_iso8601] "$request" $status $flags';
const envoyEnd =
  '$received_bytes $sent_bytes $duration $upstream_time "$http_x_forwarded_for" "$http_user_agent" "$request_id" "$host" "$upstream_host"';
/** Headers that it captures stand before the request line. */
const haproxy =
  '$client_addr_port [$time_local] $frontend $backend $timers $status $sent_bytes $request_cookie $response_cookie $state $connections $queues "$request"';

/** Formats as patterns, in the syntax of nginx's `log_format`. */
const patterns: Readonly<Record<string, string>> = {
  combined,
  common,
  "host-combined": `$host ${combined}`,
  "vhost-combined": `$host:$server_port ${combined}`,
  alb: '$type $time_iso8601 $elb $client_addr_port $target_addr_port $request_time $target_time $response_time $status $target_status $received_bytes $sent_bytes "$request" "$http_user_agent"',
  elb: '$time_iso8601 $elb $client_addr_port $target_addr_port $request_time $target_time $response_time $status $target_status $received_bytes $sent_bytes "$request" "$http_user_agent"',
  s3: '$bucket_owner $bucket [$time_local] $remote_addr $requester $request_id $operation $key "$request" $status $error_code $bytes_sent $object_size $total_time $turn_around_time "$http_referer" "$http_user_agent"',
  envoy: `${envoyStart} ${envoyEnd}`,
  istio: `${envoyStart} $details $connection_details "$upstream_failure" ${envoyEnd}`,
  haproxy: `$syslog haproxy[$pid]: ${haproxy}`,
  "haproxy-raw": haproxy,
  heroku:
    '$time_iso8601 heroku[router]: at=$at method=$request_method path="$request_uri" host=$host request_id=$request_id fwd="$http_x_forwarded_for" dyno=$dyno',
};

/** Formats of one JSON object per line. `json` knows the names that many programs use. */
const jsons: Readonly<Record<string, JsonFields>> = {
  caddy: {
    time: ["ts"],
    address: ["request.client_ip", "request.remote_ip", "request.remote_addr"],
    method: ["request.method"],
    target: ["request.uri"],
    headers: ["request.headers"],
  },
  traefik: {
    time: ["StartUTC", "StartLocal", "time"],
    address: ["ClientHost", "ClientAddr"],
    method: ["RequestMethod"],
    target: ["RequestPath"],
  },
  pino: {
    time: ["time"],
    address: ["req.ip", "req.remoteAddress"],
    method: ["req.method"],
    target: ["req.url"],
    headers: ["req.headers"],
  },
  morgan: {
    time: ["date", "time", "timestamp"],
    address: ["remote-addr", "remote_addr", "remoteAddr", "remoteAddress"],
    method: ["method"],
    target: ["url"],
  },
  json: {
    time: [
      ...["time", "timestamp", "@timestamp", "ts", "time_iso8601", "msec", "time_local", "date", "datetime", "start_time", "isoTime"],
      ...["requestTime", "started_at", "timeStamp", "EdgeStartTimestamp", "reqTimeSec"],
    ],
    address: [
      ...["client_ip", "clientIp", "clientIP", "ip", "remote_addr", "remoteAddr", "remote_ip", "remoteIp", "remoteAddress", "client"],
      ...["client.ip", "client.address", "source.ip", "source.address", "http.client_ip", "httpRequest.remoteIp", "req.ip", "request.ip"],
      ...["downstream_remote_address", "request.remoteAddress", "c-ip", "x_forwarded_for", "http_x_forwarded_for"],
      ...["ClientIP", "cliIP", "proxy.clientIp", "properties.clientIp", "properties.clientIP", "httpRequest.clientIp"],
    ],
    method: [
      ...["method", "request_method", "requestMethod", "http_method", "httpMethod", "verb", "http.request.method", "http.method"],
      ...["httpRequest.requestMethod", "request.method", "req.method", "cs-method"],
      ...["ClientRequestMethod", "reqMethod", "proxy.method", "properties.httpMethod", "httpRequest.httpMethod"],
    ],
    target: [
      // Vercel's own `path` is that of the function.
      "proxy.path",
      ...["url", "uri", "path", "request_uri", "requestUri", "request_path", "request_url", "originalUrl", "target"],
      ...["url.original", "url.path"],
      ...["http.target", "http.url", "httpRequest.requestUrl", "request.url", "request.uri", "request.path", "req.url", "cs-uri-stem"],
      ...["ClientRequestURI", "ClientRequestPath", "reqPath", "properties.requestUri", "httpRequest.uri"],
    ],
    request: ["request", "request_line"],
    headers: ["headers", "request.headers", "req.headers", "request_headers", "http.request.headers"],
  },
};

/** The names of all known formats. */
export const formatNames: readonly string[] = [...Object.keys(patterns), ...Object.keys(jsons), "w3c", "cloudfront"];

export interface FormatOptions {
  /** The field that holds the client's address. Default: the usual one of the format. */
  readonly address?: string | undefined;
}

/** A format by its name. Each log needs its own, because a format may remember what a line before has said. */
function knownFormat(name: string, { address }: FormatOptions): LogFormat {
  const { [name]: pattern } = patterns;
  if (pattern !== undefined) return new PatternFormat(name, pattern, address);
  const { [name]: fields } = jsons;
  if (fields !== undefined) return new JsonFormat(name, address === undefined ? fields : { ...fields, address: [address] });
  return new W3cFormat(name, name === "cloudfront" ? cloudfrontColumns : "", address);
}

/**
 * The format that a name or a pattern stands for.
 * @throws FloodgateError `FLOODGATE_INVALID_OPTION` if it is neither, `FLOODGATE_UNKNOWN_OPTION` for another option than `address`.
 */
export function formatOf(text: string, options: FormatOptions = {}): LogFormat {
  checkOptions("formatOf", options, ["address"], 'formatOf("combined", { address: "$http_x_forwarded_for" })');
  if (isApacheFormat(text)) return new PatternFormat(text, apachePattern(text), options.address);
  if (text.includes("$")) return new PatternFormat(text, text, options.address);
  const name = formatNames.find((name) => name === text.toLowerCase());
  if (name !== undefined) return knownFormat(name, options);
  throw invalidOption(
    `There is no log format ${JSON.stringify(text)}.${didYouMean(text, formatNames)} The formats are ${formatNames.join(", ")}; or write the format as in nginx's log_format or Apache's LogFormat: --format '$remote_addr [$time_local] "$request"', --format '%h %l %u %t "%r" %>s %b'.`,
  );
}

/** The format that fits most of these lines, the one with the most fields among several. Undefined if none fits any line. */
export function detectFormat(lines: readonly string[], options: FormatOptions = {}): LogFormat | undefined {
  const fitting = formatNames.flatMap((name) => {
    const format = tryKnown(name, options);
    const fits = lines.map((line) => format?.fit(line) ?? 0).filter((fields) => fields > 0);
    return fits.length === 0 ? [] : { name, count: fits.length, fields: Math.max(...fits) };
  });
  const [best] = fitting.sort((a, b) => b.count - a.count || b.fields - a.fields);
  // A new one, which remembers none of these lines.
  return best && knownFormat(best.name, options);
}

/** Undefined if the format has no such address field. */
function tryKnown(name: string, options: FormatOptions): LogFormat | undefined {
  try {
    return knownFormat(name, options);
  } catch {
    return undefined;
  }
}
