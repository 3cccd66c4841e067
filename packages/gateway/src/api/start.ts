import { createServer } from "node:http";
import { FloodgateError } from "@floodgate/core";
import { getRequestListener } from "@hono/node-server";
import { isUnix, parseAddress } from "../config/address.js";
import { listen } from "../service/listen.js";
import type { Part } from "../service/part.js";
import type { Service } from "../service/service.js";
import { apiApp } from "./app.js";
import { TokenFile } from "./tokens.js";

/**
 * Starts the JSON API. Undefined if it has no address.
 * @throws FloodgateError if other machines could use it without a token.
 */
export async function startApi(service: Service): Promise<Part | undefined> {
  const { apiListen: address, apiTokenFile, apiSocketMode, closeMs } = service.settings;
  if (address === undefined) return undefined;
  const tokens = apiTokenFile === undefined ? undefined : new TokenFile(apiTokenFile, service.log);
  const isOpen = tokens === undefined && !isUnix(address);
  if (isOpen) {
    if (!isLoopback(address)) {
      throw new FloodgateError(
        "FLOODGATE_INVALID_OPTION",
        `\`apiListen\` is ${address}, which other machines reach, but the API has no token: anyone could reset limits. Write --api-token-file /run/secrets/floodgate-api, or listen on 127.0.0.1 or a Unix socket.`,
      );
    }
    service.log.warn(
      { address },
      "The JSON API has no token, so every process of this machine may use it. Set apiTokenFile, or listen on a Unix socket",
    );
  }
  const app = apiApp(service, { tokens, isOpen });
  const server = createServer({ headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 75_000 }, getRequestListener(app.fetch));
  const listening = await listen(server, address, "apiListen", Number.parseInt(apiSocketMode, 8));
  return { name: "apiListen", address: listening.address, url: listening.url, close: () => listening.close(closeMs) };
}

function isLoopback(address: string): boolean {
  const parsed = parseAddress(address);
  return parsed !== undefined && "host" in parsed && /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i.test(parsed.host);
}
