import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { closeAll, descriptor, start } from "./client.js";

afterEach(closeAll);

const page = readFileSync(join(__dirname, "../../../../docs/gateways/envoy.md"), "utf8");
const blocks = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, text]) => text as string);
const rules = blocks.find((text) => text.startsWith("# limits.yaml")) as string;

describe("docs/gateways/envoy.md", () => {
  it("has YAML that can be read", () => {
    expect(blocks.length).toBeGreaterThan(4);
    for (const block of blocks) expect(parse(block)).toBeTypeOf("object");
  });

  it("has rules that limit the descriptors of its config", async () => {
    const { connect } = await start(rules.slice(rules.indexOf("rules:") + "rules:".length));
    const envoy = connect();
    // The actions of the routes /login and /, as Envoy makes descriptors of them.
    const config = JSON.stringify(parse(blocks.find((text) => text.startsWith("# envoy.yaml")) as string));
    expect(config).toContain('{"generic_key":{"descriptor_key":"path","descriptor_value":"/login"}},{"remote_address":{}}');
    const login = {
      domain: "edge",
      descriptors: [descriptor("path=/login", "remote_address=203.0.113.9"), descriptor("remote_address=203.0.113.9")],
    };
    const answer = await envoy.ask(login);
    expect(answer.statuses.map(({ limit }) => limit?.name)).toEqual(["login", "per-address"]);
    const other = await envoy.ask({ domain: "edge", descriptors: [descriptor("remote_address=203.0.113.9")] });
    expect(other.statuses.map(({ limit }) => limit?.name)).toEqual(["per-address"]);
  });
});
