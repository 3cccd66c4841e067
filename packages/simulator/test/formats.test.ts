import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { detectFormat } from "../src/formats/known.js";
import { formatNames, formatOf } from "../src/index.js";
import { simulate } from "../src/simulate.js";
import { lineAt, logOf, rules } from "./logs.js";

const timeMs = Date.UTC(2026, 10, 20, 12, 0, 1);
const expected = { timeMs, address: "203.0.113.9", method: "POST", target: "/posts?page=2" };

const caddy = {
  level: "info",
  ts: timeMs / 1000,
  logger: "http.log.access",
  msg: "handled request",
  request: {
    remote_ip: "203.0.113.9",
    remote_port: "41342",
    client_ip: "203.0.113.9",
    proto: "HTTP/2.0",
    method: "POST",
    host: "example.com",
    uri: "/posts?page=2",
    headers: { "User-Agent": ["curl/8"], "X-User": ["ann"] },
  },
  duration: 0.0009,
  status: 200,
};
const traefik = {
  ClientAddr: "203.0.113.9:52000",
  ClientHost: "203.0.113.9",
  RequestMethod: "POST",
  RequestPath: "/posts?page=2",
  StartUTC: "2026-11-20T12:00:01.000000123Z",
  "request_User-Agent": "curl/8",
  "request_X-User": "ann",
  level: "info",
};
const pino = {
  level: 30,
  time: timeMs,
  req: {
    id: 1,
    method: "POST",
    url: "/posts?page=2",
    headers: { "user-agent": "curl/8", "x-user": "ann" },
    remoteAddress: "::ffff:203.0.113.9",
  },
  res: { statusCode: 200 },
  msg: "request completed",
};
const morgan = {
  "remote-addr": "203.0.113.9",
  date: "Fri, 20 Nov 2026 12:00:01 GMT",
  method: "POST",
  url: "/posts?page=2",
  "user-agent": "curl/8",
  "x-user": "ann",
};
const nginxJson = {
  time_iso8601: "2026-11-20T13:00:01+01:00",
  remote_addr: "203.0.113.9",
  request: "POST /posts?page=2 HTTP/1.1",
  http_user_agent: "curl/8",
  http_x_user: "ann",
};
const request = '"POST /posts?page=2 HTTP/1.1"';

/** A line of each format, after lines that the format needs before it. */
const logs: Record<string, readonly string[]> = {
  combined: [`203.0.113.9 - ann [20/Nov/2026:12:00:01 +0000] ${request} 200 12 "-" "curl/8"`],
  common: [`203.0.113.9 - ann [20/Nov/2026:14:00:01 +0200] ${request} 200 12`],
  "host-combined": [`example.com 203.0.113.9 - ann [20/Nov/2026:12:00:01 +0000] ${request} 200 12 "-" "curl/8"`],
  "vhost-combined": [`example.com:443 203.0.113.9 - ann [20/Nov/2026:12:00:01 +0000] ${request} 200 12 "-" "curl/8"`],
  alb: [
    `https 2026-11-20T12:00:01.000000Z app/my-lb/50dc6c495c0c9188 203.0.113.9:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "POST https://example.com:443/posts?page=2 HTTP/1.1" "curl/8" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:x "Root=1-58337281" "example.com" "-" 1 2026-11-20T12:00:00.900000Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-"`,
  ],
  elb: [
    '2026-11-20T12:00:01.000000Z my-lb 203.0.113.9:2817 10.0.0.1:80 0.000073 0.001048 0.000057 200 200 0 29 "POST https://example.com:443/posts?page=2 HTTP/1.1" "curl/8" - -',
  ],
  envoy: [
    `[2026-11-20T12:00:01.000Z] "POST /posts?page=2 HTTP/2" 200 - 154 0 226 100 "10.0.0.1, 203.0.113.9" "curl/8" "cc21d9b0" "example.com" "tcp://10.0.2.1:80"`,
  ],
  istio: [
    `[2026-11-20T12:00:01.000Z] "POST /posts?page=2 HTTP/2" 200 - via_upstream - "-" 0 135 4 4 "203.0.113.9" "curl/8" "84961386" "example.com" "127.0.0.1:80" inbound|8000|| 127.0.0.1:44854 10.44.1.23:80 10.44.1.27:37652 - default`,
  ],
  haproxy: [
    `Nov 20 12:00:01 localhost haproxy[14389]: 203.0.113.9:33317 [20/Nov/2026:12:00:01.000] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {example.com} {} ${request}`,
  ],
  "haproxy-raw": [
    `203.0.113.9:33317 [20/Nov/2026:12:00:01.000] http-in~ static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 ${request}`,
  ],
  heroku: [
    `2026-11-20T12:00:01+00:00 heroku[router]: at=info method=POST path="/posts?page=2" host=example.com request_id=8601b555 fwd="203.0.113.9" dyno=web.1 connect=1ms service=18ms status=200 bytes=13 protocol=https`,
  ],
  s3: [
    `79a59df900b949e5 my-bucket [20/Nov/2026:12:00:01 +0000] 203.0.113.9 79a59df900b949e5 3E57427F3EXAMPLE REST.POST.OBJECT posts "POST /posts?page=2 HTTP/1.1" 200 - 113 - 7 5 "https://example.com/" "curl/8" -`,
  ],
  caddy: [JSON.stringify(caddy)],
  traefik: [JSON.stringify(traefik)],
  pino: [JSON.stringify(pino)],
  morgan: [JSON.stringify(morgan)],
  json: [JSON.stringify(nginxJson)],
  w3c: [
    "#Software: Microsoft Internet Information Services 10.0",
    "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(X-User) sc-status",
    "2026-11-20 12:00:01 10.0.0.2 POST /posts page=2 443 - 203.0.113.9 curl/8 ann 200",
  ],
  cloudfront: ["2026-11-20\t12:00:01\tFRA2\t392\t203.0.113.9\tPOST\td111111abcdef8.cloudfront.net\t/posts\t200\t-\tcurl/8\tpage=2\t-\tHit"],
};

const withoutUserAgent = ["common", "haproxy", "haproxy-raw", "heroku"];

describe.each(formatNames)("the format %s", (name) => {
  const lines = logs[name] as readonly string[];

  it("is found out, and its requests are read", () => {
    const format = detectFormat(lines);
    expect(format?.name).toBe(name);
    const request = lines.map((line) => format?.parse(line)).at(-1);
    const target = name === "alb" || name === "elb" ? "https://example.com:443/posts?page=2" : expected.target;
    const address = name === "pino" ? "::ffff:203.0.113.9" : expected.address;
    expect(request).toMatchObject({ ...expected, target, address });
  });

  it("gives headers to rules", async () => {
    const set = rules("rules: [{ name: curl, match: { header: { user-agent: curl/* } }, limit: 1, window: 1m }]");
    const {
      rules: [rule],
      notes,
    } = await simulate([logOf([...lines, lines.at(-1) as string])], set);
    const hasHeader = !withoutUserAgent.includes(name);
    expect(rule).toMatchObject(hasHeader ? { requests: 2, limited: 1, topLimited: [{ key: "203.0.113.9" }] } : { requests: 0 });
    expect(notes).toEqual(hasHeader ? [] : ['The log does not have the header "user-agent", so no request has it.']);
  });

  it.each([
    ...["caddy  | ", "web_1 | ", "[my.app-1]  | "],
    ...["2026-11-20T12:00:00.123456789Z ", "caddy-1  | 2026-11-20T12:00:00.123456789Z "],
    ...["[pod/caddy-7d9c/caddy] ", "2026-11-20T12:00:00.1+01:00 ", "[pod/caddy-7d9c/caddy] 2026-11-20T12:00:00.123456789Z "],
    ...["caddy-7d9c5b-x2k4p caddy ", "web-0 web 2026-11-20T12:00:00.123456789Z ", "[caddy-7d9c5b-x2k4p] ", "[web-0 web] "],
    ...["2026-11-20T12:00:00.123456789Z stdout F ", "2026-11-20T12:00:00.123456789+02:00 stderr F "],
  ])("is read behind what Docker, kubectl, stern and kubetail write before each line: %s", async (prefix) => {
    const set = rules("rules: [{ name: per-ip, limit: 1, window: 1m }]");
    const twice = [...lines, lines.at(-1) as string];
    for (const format of [undefined, name]) {
      const alone = await simulate([logOf(twice)], set, { format });
      expect(alone.rules[0]).toMatchObject({ requests: 2, limited: 1 });
      expect(await simulate([logOf(twice.map((line) => prefix + line))], set, { format })).toEqual(alone);
    }
  });

  it("says which field of a key no request has", async () => {
    const set = rules("rules: [{ name: a, key: [user, app], limit: 1, window: 1m, onMissingKey: skip }]");
    const keys = { app: "req.headers.x-ap", user: "req.headers.x-ap" };
    const { notes } = await simulate([logOf(lines)], set, { keys });
    expect(notes).toContain('The log does not have a field "req.headers.x-ap", so no request has it.');
  });
});

describe("a W3C log without the column `date`", () => {
  const read = (lines: readonly string[]): (string | undefined)[] => {
    const format = detectFormat(lines);
    return lines.flatMap((line) => {
      const parsed = format?.parse(line);
      return typeof parsed === "object" ? new Date(parsed.timeMs).toISOString() : parsed === "blank" ? [] : parsed;
    });
  };
  const lineAt = (time: string): string => `${time} GET /a 203.0.113.9`;
  const columns = "#Fields: time cs-method cs-uri-stem c-ip";

  it.each([
    ["2026-11-20 12:00:00", ["12:00:00", "11:59:59", "23:59:59"], [20, 20, 20]],
    ["2026-11-20 00:00:00", ["23:59:59", "00:00:01", "23:59:59", "00:00:02", "22:59:59", "21:00:00"], [20, 21, 20, 21, 21, 22]],
    ["2026-11-20 23:30:00", ["00:00:01.5", "23:30:00", "22:00:00"], [21, 20, 21]],
  ])("is on the day that #Date: %s says, and on the next one after midnight", (date, times, days) => {
    const expected = times.map((time, i) => new Date(`2026-11-${days[i]}T${time}Z`).toISOString());
    expect(read(["#Version: 1.0", `#Date: ${date}`, columns, ...times.map(lineAt)])).toEqual(expected);
  });

  it("begins anew with each #Date", () => {
    const lines = ["#Date: 2026-11-20 12:00:00", columns, lineAt("12:00:00"), "#Date: 2026-11-25 08:00:00", columns, lineAt("09:00:00")];
    expect(read(lines)).toEqual(["2026-11-20T12:00:00.000Z", "2026-11-25T09:00:00.000Z"]);
  });

  it.each([[[]], [["#Date: 12-Jan-2026 12:00:00"]]])("has no times if no line says the date: %j", (start) => {
    expect(read([...start, columns, lineAt("12:00:00"), lineAt("25:00:00")])).toEqual(["no-time", "no-time"]);
  });

  it("of IIS Advanced Logging has local times, which are read as UTC", () => {
    const line = '2026-11-20 14:00:01.250 GET /a 203.0.113.9 "curl/8 (x)"';
    const local = "#Fields: date-local time-local cs-method cs-uri-stem c-ip cs(User-Agent)";
    const start = ["#Software: IIS Advanced Logging Module", "#Start-Date: 2026-11-20 12:00:00.000"];
    expect(read([...start, local, line])).toEqual(["2026-11-20T14:00:01.250Z"]);
    const both = "#Fields: date-local time-local date time cs-method cs-uri-stem c-ip";
    expect(read([...start, both, "2026-11-20 14:00:01.250 2026-11-20 12:00:01.250 GET /a 203.0.113.9"])).toEqual([
      "2026-11-20T12:00:01.250Z",
    ]);
    // A local time without its date is not enough.
    expect(read([...start, "#Fields: date time-local cs-method cs-uri-stem c-ip", "2026-11-20 14:00:01 GET /a 203.0.113.9"])).toEqual([
      "no-time",
    ]);
  });
});

const time = "2026-11-20T12:00:01Z";
it.each<[string, object]>([
  [
    "Cloudflare",
    { ClientIP: "203.0.113.9", ClientRequestMethod: "POST", ClientRequestURI: "/posts?page=2", EdgeStartTimestamp: timeMs * 1e6 },
  ],
  ["Akamai", { reqTimeSec: `${timeMs / 1000}`, cliIP: "203.0.113.9", reqMethod: "POST", reqPath: "/posts?page=2" }],
  [
    "Vercel",
    {
      ...{ timestamp: timeMs, path: "api/posts" },
      proxy: { timestamp: timeMs + 5, method: "POST", path: "/posts?page=2", clientIp: "203.0.113.9" },
    },
  ],
  ["AWS API Gateway", { ip: "203.0.113.9", requestTime: "20/Nov/2026:12:00:01 +0000", httpMethod: "POST", path: "/posts?page=2" }],
  ["AWS WAF", { timestamp: timeMs, httpRequest: { clientIp: "203.0.113.9", uri: "/posts?page=2", httpMethod: "POST" } }],
  ["Azure Front Door", { time, properties: { httpMethod: "POST", requestUri: "/posts?page=2", clientIp: "203.0.113.9" } }],
  [
    "Azure Application Gateway",
    { timeStamp: time, properties: { clientIP: "203.0.113.9", httpMethod: "POST", requestUri: "/posts?page=2" } },
  ],
  [
    "Google's load balancer",
    { timestamp: time, httpRequest: { requestMethod: "POST", requestUrl: "/posts?page=2", remoteIp: "203.0.113.9" } },
  ],
  ["Kong", { client_ip: "203.0.113.9", started_at: timeMs, request: { method: "POST", uri: "/posts?page=2", headers: {} } }],
  [
    "Elastic's common schema",
    { "@timestamp": time, source: { ip: "203.0.113.9" }, http: { request: { method: "POST" } }, url: { original: "/posts?page=2" } },
  ],
])("JSON lines of %s are read", (_, line) => {
  const format = detectFormat([JSON.stringify(line)]);
  expect(format?.name).toBe("json");
  expect(format?.parse(JSON.stringify(line))).toMatchObject(expected);
});

it.each([
  ["caddy", "header:x-user"],
  ["traefik", "header:X-User"],
  ["pino", "req.headers.x-user"],
  ["morgan", "x-user"],
  ["json", "$http_x_user"],
  ["w3c", "cs(X-User)"],
])("a field of the format %s is a key of the app", async (name, field) => {
  const set = rules("rules: [{ name: per-user, key: user, limit: 1, window: 1m }]");
  const lines = logs[name] as readonly string[];
  const {
    rules: [rule],
  } = await simulate([logOf([...lines, lines.at(-1) as string])], set, { keys: { user: field } });
  expect(rule).toMatchObject({ requests: 2, limited: 1, topLimited: [{ key: "ann" }] });
});

it.each([
  "2026-11-20 12:00:01,116 INFO [org.example.audit.Manager] - Mon Nov 20 2026|CAS|Supplied credentials: [john] FAILED 203.0.113.9",
  "2026-11-20 12:00:01.311 -05:00 [ERR] Request to https://push.example.com/register is unsuccessful with status of BadRequest",
  "[2026-11-20 12:00:01,382] INFO [Kafka Server 0] started the new broker after a long time (kafka.server.KafkaServer)",
  '[20/Nov/2026:12:00:01 +0000] - 404 404 - GET https example.com "/posts" [Client 203.0.113.9] [Length 192] [Gzip -] [Sent-to app] "curl/8" "-"',
])("a program's log is no access log: %s", (line) => {
  expect(detectFormat([line, line])).toBeUndefined();
});

it.each([1e-3, 1, 1e3, 1e6])("each millisecond is read exactly from a time since the epoch, of %d units each", (units) => {
  const format = formatOf("json");
  for (let ms = timeMs; ms < timeMs + 1000; ms++) {
    const ts = units < 1 ? ms / 1000 : ms * units;
    expect(format.parse(JSON.stringify({ ts, method: "GET", path: "/" }))).toMatchObject({ timeMs: ms });
  }
});

describe("a format written as in nginx's log_format", () => {
  it("is read with its own variables", async () => {
    const pattern = '$remote_addr|$msec|$request_method|$request_uri|"$http_x_user"|$http_x_plan';
    const set = rules("rules: [{ name: per-user, key: user, limit: 1, window: 1m, plans: { pro: { limit: 2 } } }]");
    const line = (user: string, plan: string) => `203.0.113.9|1795176001.123|GET|/|"${user}"|${plan}`;
    const log = logOf([line("ann", "free"), line("ann", "free"), line("bob", "pro"), line("bob", "pro"), line("bob", "pro")]);
    const {
      rules: [rule],
      firstMs,
    } = await simulate([log], set, { format: pattern, keys: { user: "$http_x_user" }, plan: "$http_x_plan" });
    expect(firstMs).toBe(1795176001123);
    expect(rule).toMatchObject({ requests: 5, limited: 2, clients: 2, clientsLimited: 2 });
  });

  it.each([
    ['%h %l %u %t \\"%r\\" %>s %b \\"%{Referer}i\\" \\"%{User-Agent}i\\"', "GET /a?b=1 HTTP/1.1"],
    ['%h %l %u %t "%m %U%q %H" %>s %b "%{Referer}i" "%{User-Agent}i"', "GET /a?b=1 HTTP/1.1"],
    ['%a %l %u %{%Y-%m-%dT%H:%M:%S%z}t "%r" %s %O "%{Referer}i" "%{User-Agent}i"', "GET /a?b=1 HTTP/1.1", "2026-11-20T12:00:01+0000"],
  ])("may be Apache's LogFormat: %s", (logFormat, request, time = "[20/Nov/2026:12:00:01 +0000]") => {
    const format = formatOf(logFormat);
    const parsed = format.parse(`2001:db8::1 - ann ${time} "${request}" 200 12 "-" "curl/8"`);
    expect(parsed).toMatchObject({ timeMs, address: "2001:db8::1", method: "GET", target: "/a?b=1" });
    expect(format.header("user-agent")?.((parsed as { line: unknown }).line)).toBe("curl/8");
  });

  it("may begin with text, and its escapes are undone", () => {
    const format = formatOf('access: [$time_iso8601] $remote_addr "$request" "$http_user_agent" end');
    const parsed = format.parse('access: [2026-11-20T12:00:01Z] 2001:db8::1 "GET /a\\x22b\\"c HTTP/1.1" "\\x3Cb\\x3E" end');
    expect(parsed).toMatchObject({ timeMs, address: "2001:db8::1", target: '/a"b"c' });
    expect(format.header("user-agent")?.((parsed as { line: unknown }).line)).toBe("<b>");
  });

  it.each([
    ['$remote_addr "$request"', "lacks a time"],
    ["$remote_addr [$time_local]", "lacks the request"],
    ['$remote_addr$remote_user [$time_local] "$request"', "without a character between them"],
    ["combine", 'Did you mean "combined"?'],
  ])("%s is refused: it %s", (text, reason) => {
    expect(() => formatOf(text)).toThrow(reason);
  });
});

it("lists of forwarded addresses end with the one that the nearest proxy has seen", async () => {
  const set = rules("rules: [{ name: per-ip, limit: 1, window: 1m }]");
  const format = '$remote_addr - [$time_local] "$request" "$http_x_forwarded_for"';
  const line = '10.0.0.1 - [20/Nov/2026:12:00:01 +0000] "GET / HTTP/1.1" "6.6.6.6, 203.0.113.9"';
  const {
    rules: [rule],
  } = await simulate([logOf([line, line])], set, { format, address: "http_x_forwarded_for" });
  expect(rule?.topLimited).toMatchObject([{ key: "203.0.113.9" }]);
});

it("the likeliest address of a line counts, whatever the lines before it have", async () => {
  const set = rules("rules: [{ name: per-ip, limit: 9, window: 1m }]");
  const line = (request: object): string => JSON.stringify({ ...caddy, request: { ...caddy.request, ...request } });
  const lines = [line({ client_ip: undefined, remote_ip: "10.0.0.1" }), line({ client_ip: "203.0.113.9", remote_ip: "10.0.0.1" })];
  const [rule] = (await simulate([logOf(lines)], set)).rules;
  expect(rule?.heaviest.map(({ key }) => key).sort()).toEqual(["10.0.0.1", "203.0.113.9"]);
});

it("IPv6 clients are networks, and IPv4-mapped ones are IPv4, as in production", async () => {
  const set = rules("rules: [{ name: per-ip, limit: 1, window: 1m, exempt: { ips: [198.51.100.0/24] } }]");
  const ips = ["2001:db8:0:101::1", "2001:db8:0:1ff::2", "::ffff:203.0.113.9", "203.0.113.9", "198.51.100.7", "198.51.100.7"];
  const {
    rules: [rule],
  } = await simulate([logOf(ips.map((ip) => lineAt(ip, 1)))], set);
  expect(rule).toMatchObject({ requests: 4, limited: 2, clients: 2, exempt: 2 });
  expect(rule?.topLimited.map(({ key }) => key)).toEqual(["2001:db8:0:100::/56", "203.0.113.9"]);
});

it("host names and anonymous addresses are clients of their own, by their names", async () => {
  const set = rules("rules: [{ name: per-ip, limit: 1, window: 1m }]");
  const names = ["unicomp6.unicomp.net", "unicomp6.unicomp.net", "203.0.113.x", "burger.letters.com"];
  const {
    rules: [rule],
    notes,
  } = await simulate([logOf(names.map((name) => lineAt(name, 1)))], set);
  expect(rule).toMatchObject({ requests: 4, limited: 1, clients: 3, topLimited: [{ key: "unicomp6.unicomp.net" }] });
  expect(notes).toEqual(["3 clients have a name instead of an IP address. Each name counts as an address of its own."]);
});

it("logs of several servers and rotated logs are replayed in the order of their times", async () => {
  const set = rules("rules: [{ name: per-ip, policy: { algorithm: fixed-window, limit: 10, window: 1m } }]");
  const lines = Array.from({ length: 400 }, (_, i) => lineAt("192.0.2.1", i));
  const even = lines.filter((_, i) => i % 2 === 0 && i < 200);
  const odd = lines.filter((_, i) => i % 2 === 1 && i < 200);
  const logs = [logOf(lines.slice(200), "access.log"), logOf(gzipSync(even.join("\n")), "access.log.1.gz"), logOf(odd, "other.log")];
  const together = await simulate(logs, set);
  const alone = await simulate([logOf(lines)], set);
  expect(together).toMatchObject({ lines: 400, late: 0, rules: alone.rules });
});

it.each([
  ["$uri", ["/a", "/a"]],
  ["uri", ["/a", "/a"]],
  ["$request_uri", ["/a?page=1", "/a?page=2"]],
  ["$args", ["page=1", "page=2"]],
  ["$request_method", ["GET", "GET"]],
])("a log that has only the request line has %s too", async (field, keys) => {
  const lines = [lineAt("192.0.2.1", 0, "GET /a?page=1 HTTP/1.1"), lineAt("192.0.2.1", 1, "GET /a?page=2 HTTP/1.1")];
  const set = rules("rules: [{ name: paths, key: path, limit: 1, window: 1m }]");
  const [rule] = (await simulate([logOf(lines)], set, { keys: { path: field } })).rules;
  expect(rule?.heaviest.map(({ key }) => key).sort()).toEqual([...new Set(keys)]);
});
