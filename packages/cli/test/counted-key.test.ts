import { encodeKey } from "@floodgate/core/store";
import { describe, expect, it } from "vitest";
import { countedKey } from "../src/counted-key.js";

const rule = (key: string | readonly string[], onMissingKey?: "ip" | "skip") => ({ name: "a", key, ...(onMissingKey && { onMissingKey }) });
const key = (...key: string[]) => ({ key });

describe("what a rule counts, of the options that tell it", () => {
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
    // What an app's own key answers may be a tuple.
    [rule("login"), key("192.0.2.1", "ann"), ["192.0.2.1", "ann"]],
    [rule("login"), key("(192.0.2.1,ann)"), ["192.0.2.1", "ann"]],
    [rule("login"), key("(ann,web)", "b"), [["ann", "web"], "b"]],
    [rule(["ip", "login"]), key("192.0.2.1", "(ann,web)"), ["192.0.2.1", ["ann", "web"]]],
    [rule("secret:login"), key("192.0.2.1", "ann"), ["192.0.2.1", "ann"]],
    [rule(["ip", "secret:login"]), key("192.0.2.1", "(ann,web)"), ["192.0.2.1", ["ann", "web"]]],
    // What a client or a framework says is a text, whatever it looks like.
    [rule("header:x-api-key"), key("(a,b)"), "(a,b)"],
    [rule(["ip", "route"]), key("192.0.2.1", "(a,b)"), ["192.0.2.1", "(a,b)"]],
    [rule("secret:header:x-token"), key("(a,b)"), "(a,b)"],
    // An address that stands in for a missing key is one; a key that reads as one is none.
    [rule("user", "ip"), { ip: "2001:db8::1" }, { missingKeyIp: "2001:db8::/56" }],
    [rule("user", "ip"), key("10.0.0.9"), "10.0.0.9"],
    [rule(["user", "route"], "ip"), { ip: "2001:db8::1" }, { missingKeyIp: "2001:db8::/56" }],
    [rule(["ip", "user"], "ip"), { ip: "192.0.2.1" }, { missingKeyIp: "192.0.2.1" }],
    [rule(["ip", "user"], "ip"), { ip: "192.0.2.1", ...key("ann") }, ["192.0.2.1", "ann"]],
  ])("%o %o", (rule, told, counted) => {
    expect(countedKey(rule, { ...told, ipv6Prefix: 56 })).toEqual(counted);
  });

  it.each([
    [rule("user", "skip"), {}, "counts by user, and 0 --key were given. Write --key <user>."],
    [rule("user", "skip"), { ip: "192.0.2.1" }, "0 --key and --ip were given. Write --key <user>."],
    [rule("user", "skip"), { ip: "192.0.2.1", ...key("ann") }, "1 --key and --ip were given. Write --key <user>."],
    [rule("user"), {}, "Write --key <user>, or only --ip <address> for who is counted by it for want of a key."],
    [rule("ip"), key("192.0.2.1", "192.0.2.2"), "Write --ip <address>."],
    [rule("user"), key(encodeKey("a".repeat(201))), "is the hash of a key that is longer than 200 characters. Write the key itself."],
    [rule("ip"), key("192.0.2"), '"192.0.2" is no address'],
    [rule("ip"), { ip: "2001:db8::/48" }, '"2001:db8::/48" is no address'],
    [rule(["ip", "header:x-api-key"]), key("token", "192.0.2.1"), "what is given for the address is no address"],
    [rule("secret:user", "skip"), {}, "Write --key <user>."],
    [rule("global"), key("all"), "Write neither --key nor --ip."],
    [rule(["user"], "skip"), key("ann", "bob"), "Write --key <user>."],
    [rule(["ip", "user"], "ip"), key("ann"), "Write --ip <address> --key <user>, or only --ip <address>"],
  ])("or what to write: %o %o", (rule, told, said) => {
    expect(() => countedKey(rule, { ...told, ipv6Prefix: 56 })).toThrow(said);
  });
});
