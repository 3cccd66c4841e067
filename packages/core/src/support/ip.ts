type Groups = [number, number, number, number, number, number, number, number];

/**
 * An IP address as its eight 16-bit groups. IPv4 `a.b.c.d` is stored as the IPv4-mapped `::ffff:a.b.c.d`, so that ranges compare
 * addresses and not notations.
 */
export type IpAddress = Readonly<Groups>;

/** A range of addresses. `prefix` counts from the first of 128 bits, so `10.0.0.0/8` has 104. The host bits are 0. */
export interface IpRange {
  readonly address: IpAddress;
  readonly prefix: number;
}

/** Longer than any address with zone and port. Longer text is rejected without reading it. */
const MAX_TEXT = 100;

const COLON = 0x3a;
const DOT = 0x2e;
const PERCENT = 0x25;
const SLASH = 0x2f;
const OPEN = 0x5b;
const CLOSE = 0x5d;

// Tables, because IPv6 is parsed and formatted on the request path: branches on random digits are mispredicted, and toString(16)
// takes three times as long.
const DIGITS = Int8Array.from({ length: 128 }, (_, code) => "0123456789abcdef".indexOf(String.fromCharCode(code).toLowerCase()));
const BYTES = Array.from({ length: 256 }, (_, byte) => byte.toString(16));
const PADDED_BYTES = BYTES.map((text) => text.padStart(2, "0"));

/** A reusable buffer for what runs on every request. */
const scratch: Groups = [0, 0, 0, 0, 0, 0, 0, 0];

/**
 * Parses an address as proxies and sockets write it: dotted IPv4 or any notation of IPv6, also with a zone id, brackets or a port, which
 * are dropped. `undefined` for anything else, including legacy IPv4 notations (`0177.0.0.1`, `127.1`).
 */
export function parseIp(text: string): IpAddress | undefined {
  const groups: Groups = [0, 0, 0, 0, 0, 0, 0, 0];
  return readIp(text, groups) ? groups : undefined;
}

/** Whether a text is a dotted quad, exactly as `formatIp` writes it. Allocates nothing. */
export function isQuad(text: string): boolean {
  const length = text.length;
  return length <= 15 && readQuad(text, 0, length, scratch, 6);
}

/**
 * The key of a client, the same for all notations of an address: IPv4 (also IPv4-mapped, and the IPv4 in NAT64's `64:ff9b::/96`) as a
 * dotted quad, other IPv6 as its network, such as `2001:db8:0:100::/56`. `undefined` if the text is not an address.
 * @param ipv6Prefix how many bits of an IPv6 address identify a client, 0 to 128.
 */
export function ipKey(text: string, ipv6Prefix: number): string | undefined {
  const { length } = text;
  if (length <= 15 && readQuad(text, 0, length, scratch, 6)) return text;
  // An IPv4 peer on Node's default dual-stack socket.
  if (length <= 22 && text.startsWith("::ffff:") && readQuad(text, 7, length, scratch, 6)) return text.slice(7);
  if (!readIp(text, scratch)) return undefined;
  if (isMapped(scratch) || isNat64(scratch)) return quadText(scratch);
  maskGroups(scratch, ipv6Prefix);
  return `${groupsText(scratch)}/${ipv6Prefix}`;
}

/** Formats an address as in RFC 5952; IPv4 as a dotted quad. */
export function formatIp(address: IpAddress): string {
  return isMapped(address) ? quadText(address) : groupsText(address);
}

/**
 * Parses a range such as `10.0.0.0/8` or `2001:db8::/32`, or a single address. Host bits are masked off. `undefined` for anything else,
 * also for `::ffff:10.0.0.0/8`: its prefix counts from the first of 128 bits, so it would contain every IPv4 address.
 */
export function parseCidr(text: string): IpRange | undefined {
  if (text.length > MAX_TEXT) return undefined;
  const slash = text.indexOf("/");
  const end = slash < 0 ? text.length : slash;
  const groups: Groups = [0, 0, 0, 0, 0, 0, 0, 0];
  const dotted = text.indexOf(":") < 0;
  if (dotted ? !readMapped(text, 0, end, groups) : !readGroups(text, 0, end, groups)) return undefined;
  let prefix = 128;
  if (slash >= 0) {
    const bits = decimal(text, slash + 1, text.length, 3);
    if (bits < 0 || bits > (dotted ? 32 : 128)) return undefined;
    prefix = dotted ? bits + 96 : bits;
  }
  if (prefix < 96 && isMapped(groups)) return undefined;
  maskGroups(groups, prefix);
  return { address: groups, prefix };
}

/** Whether a range contains an address. IPv4 ranges contain IPv4-mapped addresses too. */
export function contains(range: IpRange, address: IpAddress): boolean {
  let bits = range.prefix;
  for (let i = 0; bits > 0; i++, bits -= 16) {
    const difference = (range.address[i] as number) ^ (address[i] as number);
    if (difference >> (bits < 16 ? 16 - bits : 0) !== 0) return false;
  }
  return true;
}

function readIp(text: string, into: Groups): boolean {
  const length = text.length;
  if (length > MAX_TEXT) return false;
  if (text.charCodeAt(0) === OPEN) {
    const close = text.indexOf("]");
    if (close < 0 || !readZoned(text, 1, close, into)) return false;
    return close + 1 === length || (text.charCodeAt(close + 1) === COLON && isPort(text, close + 2));
  }
  const colon = text.indexOf(":");
  if (colon < 0) return readMapped(text, 0, length, into);
  // A dot before the first colon means IPv4 with a port: in IPv6 a dotted quad comes last.
  const dot = text.indexOf(".");
  if (dot >= 0 && dot < colon) return isPort(text, colon + 1) && readMapped(text, 0, colon, into);
  return readZoned(text, 0, length, into);
}

/** Reads IPv6 with or without a zone id. A zone id is local to the machine that wrote it and not part of the address. */
function readZoned(text: string, start: number, end: number, into: Groups): boolean {
  let zone = start;
  while (zone < end && text.charCodeAt(zone) !== PERCENT) zone++;
  if (zone === end) return readGroups(text, start, end, into);
  if (zone + 1 === end) return false;
  for (let i = zone + 1; i < end; i++) {
    const code = text.charCodeAt(i);
    if (code <= 0x20 || code >= 0x7f || code === SLASH || code === OPEN || code === CLOSE) return false;
  }
  return readGroups(text, start, zone, into);
}

function readMapped(text: string, start: number, end: number, into: Groups): boolean {
  if (!readQuad(text, start, end, into, 6)) return false;
  for (let i = 0; i < 5; i++) into[i] = 0;
  into[5] = 0xffff;
  return true;
}

/** Reads exactly `a.b.c.d` into two groups, without allocations. */
function readQuad(text: string, start: number, end: number, into: Groups, at: number): boolean {
  let high = 0;
  let octet = -1;
  let dots = 0;
  for (let i = start; i < end; i++) {
    const code = text.charCodeAt(i);
    if (code >= 0x30 && code <= 0x39) {
      // Some parsers read digits after a leading zero as octal, others as decimal.
      if (octet === 0) return false;
      octet = octet < 0 ? code - 0x30 : octet * 10 + code - 0x30;
      if (octet > 255) return false;
    } else {
      if (code !== DOT || octet < 0 || dots === 3) return false;
      if (dots === 1) {
        into[at] = high | octet;
        high = 0;
      } else {
        high = octet << 8;
      }
      dots++;
      octet = -1;
    }
  }
  if (dots !== 3 || octet < 0) return false;
  into[at + 1] = high | octet;
  return true;
}

/** Reads IPv6 without zone, brackets or port. */
function readGroups(text: string, start: number, end: number, into: Groups): boolean {
  let count = 0;
  let gap = -1;
  let i = start;
  if (i + 1 < end && text.charCodeAt(i) === COLON && text.charCodeAt(i + 1) === COLON) {
    gap = 0;
    i += 2;
  }
  while (i < end) {
    if (count === 8) return false;
    const begin = i;
    let group = 0;
    let digit = 0;
    while (i < end) {
      digit = hexDigit(text.charCodeAt(i));
      if (digit < 0) break;
      if (i - begin === 4) return false;
      group = (group << 4) | digit;
      i++;
    }
    if (i < end && text.charCodeAt(i) === DOT) {
      if (count > 6 || !readQuad(text, begin, end, into, count)) return false;
      count += 2;
      break;
    }
    if (i === begin) return false;
    into[count++] = group;
    if (i === end) break;
    if (text.charCodeAt(i++) !== COLON || i === end) return false;
    if (text.charCodeAt(i) === COLON) {
      if (gap >= 0) return false;
      gap = count;
      i++;
    }
  }
  if (gap < 0) return count === 8;
  // "::" stands for at least one group.
  if (count > 7) return false;
  for (let to = 7, from = count - 1; to >= gap; to--, from--) into[to] = from >= gap ? (into[from] as number) : 0;
  return true;
}

/** The value of a hexadecimal digit; -1 for any other character, and for none. */
export function hexDigit(code: number | undefined): number {
  return DIGITS[code as number] ?? -1;
}

function isPort(text: string, start: number): boolean {
  const port = decimal(text, start, text.length, 5);
  return port >= 0 && port <= 65535;
}

/** A whole number without sign or leading zeros, or -1. */
function decimal(text: string, start: number, end: number, maxDigits: number): number {
  if (end <= start || end - start > maxDigits) return -1;
  if (text.charCodeAt(start) === 0x30 && end - start > 1) return -1;
  let value = 0;
  for (let i = start; i < end; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x30 || code > 0x39) return -1;
    value = value * 10 + code - 0x30;
  }
  return value;
}

function isMapped(address: IpAddress): boolean {
  return address[5] === 0xffff && (address[0] | address[1] | address[2] | address[3] | address[4]) === 0;
}

function isNat64(address: IpAddress): boolean {
  return address[0] === 0x64 && address[1] === 0xff9b && (address[2] | address[3] | address[4] | address[5]) === 0;
}

function maskGroups(groups: Groups, prefix: number): void {
  for (let i = 0; i < 8; i++) {
    const bits = prefix - i * 16;
    if (bits < 16) groups[i] = bits <= 0 ? 0 : (groups[i] as number) & (0xffff << (16 - bits));
  }
}

function quadText(address: IpAddress): string {
  return `${address[6] >> 8}.${address[6] & 255}.${address[7] >> 8}.${address[7] & 255}`;
}

/** RFC 5952: lower case, no leading zeros, the first longest run of at least two zero groups as "::". */
function groupsText(address: IpAddress): string {
  let gap = 8;
  let gapLength = 1;
  for (let i = 0; i < 8; i++) {
    let run = 0;
    while (i + run < 8 && address[i + run] === 0) run++;
    if (run > gapLength) {
      gap = i;
      gapLength = run;
    }
    i += run;
  }
  let text = "";
  for (let i = 0; i < 8; i++) {
    if (i === gap) {
      text += "::";
      i += gapLength - 1;
    } else {
      if (i > 0 && i !== gap + gapLength) text += ":";
      const group = address[i] as number;
      if (group > 255) text += BYTES[group >> 8];
      text += (group > 255 ? PADDED_BYTES : BYTES)[group & 255];
    }
  }
  return text;
}
