import { ChargeRecord as ChargeRecordUnder } from "../algorithms/decision.js";
import type { ChargeRecord, Limit } from "../decide/decision.js";
import type { Guard } from "../decide/guard.js";
import { FloodgateError, shown } from "../support/errors.js";
import { hmacSha256 } from "../support/hash.js";
import { NewestMap } from "../support/maps.js";
import { secretText } from "../support/options.js";

/** Signs receipts: a string of at least 32 characters, or several. The first one signs, and all are accepted. */
export type ReceiptSecret = string | readonly string[];

/** A receipt is valid for an hour, or for two spans of its policy if those are longer. */
const minValidMs = 3_600_000;
/** How many receipts of charges that only this process knows are kept at least; the oldest are dropped. */
const keptLocal = 100_000;

/** Charges in stores of this process only, by the ids of their receipts. */
const local = new NewestMap<ChargeRecord>(keptLocal);

/**
 * Signs and redeems receipts. A receipt is `fr1.<body>.<HMAC-SHA256>`. The signature also covers the store, the limit's name, the kind of
 * its state, and the key, so a receipt is valid only for these. The body is one of
 *
 *     n                                             nothing was charged
 *     l.<id>                                        a charge that only this process knows
 *     s.<cost>.<at>.<state>.<until>.<id>            a charge in a shared store
 *     s.<cost>.<at>.<state>.<until>.<id>.<end>      units that a shared store holds until their end
 */
export class Receipts {
  readonly #secrets: readonly string[];

  /**
   * The receipts of a limiter or middleware with these options; undefined without the option. `receiptSecret: undefined` is an error: it
   * is an environment variable that is not set.
   * @throws FloodgateError `FLOODGATE_INVALID_OPTION` unless each secret is a string of at least 32 characters.
   */
  static of(where: string, options: { readonly receiptSecret?: unknown }): Receipts | undefined {
    if (!("receiptSecret" in options)) return undefined;
    const option = options.receiptSecret;
    const secrets: readonly unknown[] = Array.isArray(option) && option.length > 0 ? option : [option];
    return new Receipts(secrets.map((secret) => secretText(where, "receiptSecret", secret, "RECEIPT_SECRET")));
  }

  private constructor(secrets: readonly string[]) {
    this.#secrets = secrets;
  }

  /** @param charge undefined if the decision charged nothing. */
  issue(name: string, charge: ChargeRecord | undefined): string {
    if (charge === undefined || charge.fate !== undefined) return this.#signed(["", name, "", ""], "n");
    const { limit, key, cost, atMs, state, heldUntilMs } = charge;
    const { stateKind, spanMs } = limit.policy;
    charge.issued ??= { id: newId(), untilMs: atMs + Math.max(minValidMs, 2 * spanMs) };
    const { id, untilMs } = charge.issued;
    const dataId = charge.settler?.dataId;
    if (dataId === undefined || state === undefined) {
      local.set(id, charge);
      return this.#signed(["", name, stateKind, key], `l.${id}`);
    }
    // From now on this process settles by the receipt too, so that the store deduplicates.
    charge.receipt = charge.issued;
    const end = heldUntilMs === undefined ? [] : [textOf(heldUntilMs)];
    return this.#signed([dataId, name, stateKind, key], ["s", ...[cost, atMs, state, untilMs].map(textOf), id, ...end].join("."));
  }

  /**
   * Uses the charge of a receipt, under the limit of the same kind; or under the name, if nothing was charged.
   * @throws FloodgateError `FLOODGATE_INVALID_RECEIPT` unless it was issued for this name and key, and for one of these limits.
   */
  use<T>(guard: Guard, limits: readonly Limit[], key: string, text: string, use: ChargeUse<T>): T {
    const [, body = "", mac = ""] = /^fr1\.([a-z0-9.-]{1,200})\.([0-9a-f]{64})$/.exec(text) ?? [];
    const { name } = limits[0] as Limit;
    const [type, ...fields] = body.split(".");
    if (type === "n" && this.#isSigned(["", name, "", ""], body, mac)) return use(name, undefined);
    const dataId = type === "s" ? (guard.dataId ?? "") : "";
    const limit = limits.find(({ policy }) => this.#isSigned([dataId, name, policy.stateKind, key], body, mac));
    if (limit === undefined) throw invalidReceipt(name);
    if (type === "s") {
      const [units, atMs, state, untilMs, , heldUntilMs] = fields.map(numberOf) as [number, number, number, number, number, number?];
      const charge = new ChargeRecordUnder({ cost: units, atMs, state, heldUntilMs }, limit, key, undefined);
      charge.receipt = { id: fields[4] as string, untilMs };
      return use(limit, charge);
    }
    const charge = local.get(fields[0] as string);
    if (charge?.settler !== undefined && charge.settler.scope !== guard.scope) throw invalidReceipt(name);
    if (charge !== undefined) charge.receipt = charge.issued;
    const used = use(limit, charge);
    if (charge?.fate !== undefined) local.delete(fields[0] as string);
    return used;
  }

  #signed(subject: Subject, body: string): string {
    return `fr1.${body}.${macOf(this.#secrets[0] as string, subject, body)}`;
  }

  #isSigned(subject: Subject, body: string, mac: string): boolean {
    return this.#secrets.some((secret) => isEqual(macOf(secret, subject, body), mac));
  }
}

/** Settles or renews the charge of a receipt. It is undefined if nothing was charged, or if this process no longer knows it. */
export type ChargeUse<T> = (limit: Limit | string, charge: ChargeRecord | undefined) => T;

type Subject = readonly [dataId: string, name: string, kind: string, key: string];

function macOf(secret: string, subject: Subject, body: string): string {
  return hmacSha256(secret, JSON.stringify(["floodgate receipt 1", ...subject, body]));
}

/** Compares in constant time, so that the time does not reveal the signature. */
function isEqual(expected: string, actual: string): boolean {
  let difference = 0;
  for (let i = 0; i < expected.length; i++) difference |= expected.charCodeAt(i) ^ actual.charCodeAt(i);
  return difference === 0;
}

/** A unique id. It need not be secret, because the receipt is signed. */
function newId(): string {
  return Array.from({ length: 3 }, () => Math.floor(Math.random() * 2 ** 52).toString(32)).join("");
}

function textOf(value: number): string {
  return value.toString(32);
}

function numberOf(text: string): number {
  return Number.parseInt(text, 32);
}

function invalidReceipt(name: string): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_INVALID_RECEIPT",
    `${shown(name)} was given an invalid receipt: one of another limit, key, store or secret, or an altered one. Pass the result of limiter.receipt(decision), with the key that was consumed.`,
  );
}
