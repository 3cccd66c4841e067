import type { Key } from "../limits/key.js";
import type { Promised } from "../support/promises.js";

/** The second parameter of a key function. */
export interface KeyInfo {
  /**
   * The client's address, normalised: IPv4 as a dotted quad, IPv6 as its network. Reading it throws `FLOODGATE_NO_CLIENT_IP` if there
   * is no address.
   */
  readonly ip: string;
  /**
   * The pattern that matched: the rule's own path if it has no `*`, else the framework's route, else the rule's path. Reading it throws
   * `FLOODGATE_NO_ROUTE` if the request has no route.
   */
  readonly route: string;
}

/**
 * Returns the key that a request counts for, or undefined if it has none. It runs once per request, however many rules use it; a function
 * that reads `route` runs once for each route.
 */
export type KeyFunction<Req> = (request: Req, info: KeyInfo) => Promised<Key | undefined>;

/** How a request ended. */
export interface ResponseInfo {
  /** The status of its response; 499 if the client left before the response was sent. */
  readonly status: number;
}

/**
 * The units of a request. As `cost` it runs when the request arrives. As `settle` it runs after the response, and returns the real cost.
 * Each runs once per request, however many rules use it.
 */
export type CostFunction<Req> = (request: Req, response?: ResponseInfo) => Promised<number | undefined>;
