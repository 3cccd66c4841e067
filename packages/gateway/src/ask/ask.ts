import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { isPromise, type Outcome, reasonOf } from "@floodgate/core/adapter";
import type { CompiledRule } from "@floodgate/core/rules";
import { isUnix } from "../config/address.js";
import type { Settings } from "../config/settings.js";
import { sampledLog, type WriteSampled } from "../log/log.js";
import { headerOfSource, headersOfSources, keyNames } from "../service/keys.js";
import { listen, type RunningServer } from "../service/listen.js";
import type { GatewayRequest } from "../service/request.js";
import type { Service } from "../service/service.js";
import type { Peer } from "../service/trust.js";
import { answer, denyRaw, refuse } from "./answers.js";
import { AskedRequest, DuplicateHeader } from "./asked-request.js";
import { type FoundPreset, type Preset, presetFinder, readSubject } from "./presets.js";

/** Gateways keep idle connections for up to an hour (Envoy). Whoever closes first loses the request that the other one is sending. */
const keepAliveTimeout = 65 * 60_000;

/** Gateways pass their clients' headers on, and allow more of them than Node does. */
const maxHeaderSize = 65_536;

/** Reading more lines than these costs too much. */
const maxHeaderLines = 1000;

/** Starts the server that gateways ask. Undefined if no preset is enabled. */
export async function startAsk(service: Service): Promise<RunningServer | undefined> {
  const { listen: address, closeMs, presets } = service.settings;
  return presets?.length === 0 ? undefined : listen(askServer(service), "listen", address, closeMs);
}

/** The server, not yet listening. */
function askServer(service: Service): Server {
  const ask = new Ask(service);
  const server = createServer(
    { keepAliveTimeout, maxHeaderSize, headersTimeout: 10_000, requestTimeout: 60_000, keepAlive: true },
    (message, response) => ask.handle(message, response),
  );
  // Node drops what is above the limit without a word, and with it what the gateway appended. So `handle` refuses a request that reaches it.
  server.maxHeadersCount = maxHeaderLines + 1;
  server.on("connection", (socket: Socket) => ask.connect(socket));
  server.on("clientError", ({ code }: NodeJS.ErrnoException, socket: Socket) =>
    denyRaw(socket, code === "HPE_HEADER_OVERFLOW" ? 431 : 400),
  );
  // Node would answer 417, which some gateways take for an error of ours. The gateway has to judge what its client expects.
  server.on("checkExpectation", (message, response) => ask.handle(message, response));
  server.on("connect", (_message, socket: Socket) => denyRaw(socket, 405));
  return server;
}

class Ask {
  readonly #service: Service;
  readonly #find: (path: string) => FoundPreset | undefined;
  readonly #clientIpHeader: string;
  readonly #keyHeadersOf: (rules: Rules) => ReadonlySet<string>;
  readonly #log: WriteSampled;
  /** A gateway sends very many requests on one connection, so its address is judged once. */
  readonly #peers = new WeakMap<Socket, Peer>();
  #hasWarnedOfForgery = false;

  constructor(service: Service) {
    const { presets, clientIpHeader } = service.settings;
    this.#service = service;
    this.#find = presetFinder(presets);
    this.#clientIpHeader = clientIpHeader.toLowerCase();
    this.#keyHeadersOf = keyHeadersOf(service.settings);
    this.#log = sampledLog(service.log);
  }

  /** A connection begins. */
  connect(socket: Socket): void {
    const { trust, settings } = this.#service;
    const peer = trust.peer(socket.remoteAddress, isUnix(settings.listen));
    if (peer === undefined) socket.destroy();
    else this.#peers.set(socket, peer);
  }

  handle(message: IncomingMessage, response: ServerResponse): void {
    const { limit } = this.#service;
    const peer = this.#peers.get(message.socket);
    // It has left.
    if (peer === undefined) return;
    // Node reads nothing that comes after a request for an upgrade, so a gateway must not send another one on the connection.
    if (message.headers.upgrade !== undefined) response.shouldKeepAlive = false;
    if (!peer.isTrusted) {
      this.#log("warn", "untrusted-peer", "A peer that is not in trustedPeers has asked", {
        peer: peer.remoteAddress ?? "unix",
      });
      refuse(response, 403, true, "This peer may not ask. Add its address to trustedPeers.\n", true);
      return;
    }
    if (message.rawHeaders.length > 2 * maxHeaderLines) {
      refuse(response, 431, true, `A request may have ${maxHeaderLines} header lines.\n`, false);
      return;
    }
    const asked = this.#find(message.url as string);
    if (asked === undefined) {
      refuse(response, 404, false, "Ask at /ask/<gateway>: /ask/nginx, /ask/caddy, ...\n", false);
      return;
    }
    const { preset } = asked;
    const subject = readSubject(asked, message);
    if ("reason" in subject) {
      this.#unreadable(response, preset, subject.isConfig, subject.reason);
      return;
    }
    const keyHeaders = this.#keyHeadersOf(limit.rules);
    if (!this.#hasWarnedOfForgery && keyHeaders.size > 0 && preset.name === "nginx") this.#noticeForgery(message, keyHeaders);
    const request = new AskedRequest(message, subject, peer, this.#clientIp(preset, message, peer), keyHeaders);
    try {
      const outcome = limit.decide(request);
      // `checkRules` has refused rules that hold requests.
      const apply = (decided: Outcome): void => answer(response, preset, decided, this.#service.draining);
      if (isPromise(outcome)) outcome.then(apply, (error) => this.#undecided(response, error));
      else apply(outcome);
    } catch (error) {
      this.#undecided(response, error);
    }
  }

  /** nginx passes the client's headers on unless its config says otherwise. Browsers and programs send this one, and nginx never does. */
  #noticeForgery({ headers }: IncomingMessage, keyHeaders: ReadonlySet<string>): void {
    if (headers["user-agent"] === undefined || keyHeaders.has("user-agent")) return;
    this.#hasWarnedOfForgery = true;
    const names = [...keyHeaders].join(", ");
    this.#service.log.warn(
      { headers: names },
      `nginx passes its client's headers to the ask. A client can forge ${names} unless the location sets or clears them. Write proxy_pass_request_headers off; and proxy_set_header for what the rules need`,
    );
  }

  /** The peer is a gateway, never the client. So a request without the header has no address. */
  #clientIp(preset: Preset, message: IncomingMessage, peer: Peer): string | undefined {
    const name = preset.clientIpHeader ?? this.#clientIpHeader;
    const value = message.headers[name];
    if (value === undefined) return undefined;
    const list = Array.isArray(value) ? value.join(", ") : value;
    // The list of nginx has a name of its own.
    return this.#service.trust.clientIp(peer, () => list, name === "x-original-for" ? "x-forwarded-for" : name);
  }

  #unreadable(response: ServerResponse, { name }: Preset, isConfig: boolean, reason: string): void {
    if (isConfig) this.#log("error", `config-${name}`, `${name} asks without what its preset needs: ${reason}`);
    else this.#log("warn", `malformed-${name}`, `${name} asks about a malformed request: ${reason}`);
    refuse(response, isConfig ? 500 : 400, !isConfig, `${reason}\n`, false);
  }

  /** A client may have caused it: it left out a key that its rule demands, for example. */
  #undecided(response: ServerResponse, error: unknown): void {
    if (error instanceof DuplicateHeader) {
      const reason = `The header ${error.message} is there twice, but a key is read from it.`;
      this.#log("warn", "duplicate-header", reason);
      refuse(response, 400, true, `${reason}\n`, false);
      return;
    }
    const { code, why } = reasonOf(error);
    if (code === "FLOODGATE_NO_CLIENT_IP") {
      this.#log(
        "error",
        "no-client-address",
        `A request has no client address and was denied: the gateway must send it in ${this.#clientIpHeader} (nginx: x-original-for)`,
      );
      refuse(response, 500, true, "The gateway sends no client address.\n", false);
      return;
    }
    this.#log("error", `undecided-${code}`, `A request could not be decided and was denied: ${why}`, { code });
    refuse(response, 500, true, "The request could not be decided.\n", false);
  }
}

type Rules = readonly CompiledRule<GatewayRequest>[];

/** Answers the headers that keys are read from, by the settings and by the active rules, in lower case. */
function keyHeadersOf(settings: Settings): (rules: Rules) => ReadonlySet<string> {
  const ofSettings = headersOfSources(settings);
  let known: Rules | undefined;
  let names: ReadonlySet<string> = new Set();
  return (rules) => {
    if (rules !== known) {
      known = rules;
      const ofRules = rules.flatMap(({ options }) => keyNames(options.key)).filter((name) => name.startsWith("header:"));
      names = new Set([...ofSettings, ...ofRules.map(headerOfSource)]);
    }
    return names;
  };
}
