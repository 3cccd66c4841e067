import type { Key } from "@floodgate/core";
import { encodeKey } from "@floodgate/core/store";
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { countedKey, parseKey } from "../src/keys.js";

const rule = (key: string | readonly string[], onMissingKey?: "ip" | "skip") => ({ name: "a", key, ...(onMissingKey && { onMissingKey }) });
const key = (...key: string[]) => ({ key });

describe("the key that the options name", () => {
  it.each([
    [rule("user"), key("42"), "42"],
    [rule("header:x-api-key"), key("2001:db8::1"), "2001:db8::1"],
    [rule("route"), key("/users/:id"), "/users/:id"],
    [rule("global"), {}, "global"],
    [rule("ip"), key("::ffff:192.0.2.1"), "192.0.2.1"],
    [rule("ip"), key("2001:0DB8:0:0100::1"), "2001:db8:0:100::/56"],
    [rule("ip"), key("2001:db8:0:100::/56"), "2001:db8:0:100::/56"],
    [{ name: "a" }, key("192.0.2.1"), "192.0.2.1"],
    [{ name: "a" }, { ip: "::ffff:192.0.2.1" }, "192.0.2.1"],
    [rule(["ip", "user"]), key("2001:db8::1", "ann"), ["2001:db8::/56", "ann"]],
    [rule(["user", "ip"]), { ip: "2001:db8::1", ...key("ann") }, ["ann", "2001:db8::/56"]],
    [rule(["global", "user"]), key("ann"), ["global", "ann"]],
    [rule(["user"]), key("ann"), ["ann"]],
    // A key function of the app may return a tuple.
    [rule("login"), key("192.0.2.1", "ann"), ["192.0.2.1", "ann"]],
    [rule("login"), key("(192.0.2.1,ann)"), ["192.0.2.1", "ann"]],
    [rule("login"), key("(ann,web)", "b"), [["ann", "web"], "b"]],
    [rule(["ip", "login"]), key("192.0.2.1", "(ann,web)"), ["192.0.2.1", ["ann", "web"]]],
    [rule("secret:login"), key("192.0.2.1", "ann"), ["192.0.2.1", "ann"]],
    [rule(["ip", "secret:login"]), key("192.0.2.1", "(ann,web)"), ["192.0.2.1", ["ann", "web"]]],
    // Headers and routes are always strings.
    [rule("header:x-api-key"), key("(a,b)"), "(a,b)"],
    [rule(["ip", "route"]), key("192.0.2.1", "(a,b)"), ["192.0.2.1", "(a,b)"]],
    [rule("secret:header:x-token"), key("(a,b)"), "(a,b)"],
    // `ip` names a client whose key is missing. A key that looks like an address is still a key.
    [rule("user", "ip"), { ip: "2001:db8::1" }, { missingKeyIp: "2001:db8::/56" }],
    [rule("user", "ip"), key("10.0.0.9"), "10.0.0.9"],
    [rule(["user", "route"], "ip"), { ip: "2001:db8::1" }, { missingKeyIp: "2001:db8::/56" }],
    [rule(["ip", "user"], "ip"), { ip: "192.0.2.1" }, { missingKeyIp: "192.0.2.1" }],
    [rule(["ip", "user"], "ip"), { ip: "192.0.2.1", ...key("ann") }, ["192.0.2.1", "ann"]],
  ])("%o %o", (rule, options, counted) => {
    expect(countedKey(rule, { ...options, ipv6Prefix: 56 })).toEqual(counted);
  });

  it.each([
    [rule("user", "skip"), {}, "counts by user, but no --key was given. Write --key <user>."],
    [rule("user", "skip"), { ip: "192.0.2.1" }, "0 --key and --ip were given. Write --key <user>."],
    [rule("user", "skip"), { ip: "192.0.2.1", ...key("ann") }, "1 --key and --ip were given. Write --key <user>."],
    [rule("user"), {}, "Write --key <user>, or only --ip <address> for a client whose key is missing."],
    [rule("ip"), key("192.0.2.1", "192.0.2.2"), "Write --ip <address>."],
    [rule("user"), key(encodeKey("a".repeat(201))), "holds the hash of a text of more than 200 characters. Write the text itself."],
    [rule("ip"), key("192.0.2"), '"192.0.2" is not an IP address'],
    [rule("ip"), { ip: "2001:db8::/48" }, '"2001:db8::/48" is not an IP address'],
    [rule(["ip", "header:x-api-key"]), key("token", "192.0.2.1"), "the value given for the address is not an IP address"],
    [rule("secret:user", "skip"), {}, "Write --key <user>."],
    [rule("global"), key("all"), "Give neither --key nor --ip."],
    [rule(["user"], "skip"), key("ann", "bob"), "Write --key <user>."],
    [rule(["ip", "user"], "ip"), key("ann"), "Write --ip <address> --key <user>, or only --ip <address>"],
  ])("is refused with advice: %o %o", (rule, options, message) => {
    expect(() => countedKey(rule, { ...options, ipv6Prefix: 56 })).toThrow(message);
  });
});

const text = fc.string({ unit: fc.constantFrom("a", "#", "(", ")", ",", "\\", "secret:", "missing-key-ip:"), maxLength: 6 });
const { anyKey } = fc.letrec<{ anyKey: unknown }>((tie) => ({
  anyKey: fc.oneof({ maxDepth: 2 }, text, fc.array(tie("anyKey"), { minLength: 1, maxLength: 3 })),
}));

test("parseKey reverses encodeKey", () => {
  fc.assert(
    fc.property(
      // `encodeKey` hashes parts of more than 200 characters.
      anyKey.filter((key) => !/\\#[\da-f]{64}/.test(encodeKey(key as Key))),
      (key) => {
        expect(parseKey(encodeKey(key as Key))).toEqual(key);
      },
    ),
  );
});

it.each(["ann", "(ann", "a,b", "ann)", "\\ann", "CORP\\ann", ""])("parseKey takes a text without escapes as it is: %j", (text) => {
  expect(parseKey(text)).toBe(text);
});
