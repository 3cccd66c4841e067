import { describe, expect, it } from "vitest";
import { countedKey } from "../src/counted-key.js";

const rule = (key: string | readonly string[], onMissingKey?: "ip") => ({ name: "a", key, ...(onMissingKey && { onMissingKey }) });

describe("what a rule counts, of the texts that stand for it", () => {
  it.each([
    [rule("user"), ["42"], "42"],
    [rule("header:x-api-key"), ["2001:db8::1"], "2001:db8::1"],
    [rule("route"), ["/users/:id"], "/users/:id"],
    [rule("global"), [], "global"],
    [rule("ip"), ["::ffff:192.0.2.1"], "192.0.2.1"],
    [rule("ip"), ["2001:0DB8:0:0100::1"], "2001:db8:0:100::/56"],
    [rule("ip"), ["2001:db8:0:100::/56"], "2001:db8:0:100::/56"],
    [{ name: "a" }, ["192.0.2.1"], "192.0.2.1"],
    [rule(["ip", "user"]), ["2001:db8::1", "ann"], ["2001:db8::/56", "ann"]],
    [rule(["global", "user"]), ["ann"], ["global", "ann"]],
    [rule(["user"]), ["ann"], ["ann"]],
    // What an app's own key answers may be a tuple.
    [rule("login"), ["192.0.2.1", "ann"], ["192.0.2.1", "ann"]],
    // An address that stands in for a missing key is one.
    [rule("user", "ip"), ["2001:db8::1"], ["ip", "2001:db8::/56"]],
    [rule("user", "ip"), ["ann"], "ann"],
    [rule(["user", "route"], "ip"), ["2001:db8::1"], ["ip", "2001:db8::/56"]],
  ])("%o %o", (rule, texts, key) => {
    expect(countedKey(rule, texts, 56)).toEqual(key);
  });

  it.each([
    [rule("user"), [], "Write --key <user>."],
    [rule("ip"), ["192.0.2.1", "192.0.2.2"], "Write --key <ip>."],
    [rule("ip"), ["192.0.2"], '"192.0.2" is no address'],
    [rule("ip"), ["2001:db8::/48"], '"2001:db8::/48" is no address'],
    [rule("global"), ["all"], "Write none."],
    [rule(["ip", "user"], "ip"), ["ann"], "Write --key <ip> --key <user>."],
  ])("or what to write: %o %o", (rule, texts, said) => {
    expect(() => countedKey(rule, texts, 56)).toThrow(said);
  });
});
