import { readFileSync } from "node:fs";
import { join } from "node:path";
import { instruments, prometheusLabel, prometheusName } from "@floodgate/metrics";
import { describe, expect, it } from "vitest";

const all = Object.values(instruments);
const names = all.map(({ name }) => name);
/** Without the spaces that pad the columns of its tables. */
const readme = readFileSync(join(__dirname, "..", "README.md"), "utf8").replace(/ +/g, " ");

describe.each(all)("$name", (instrument) => {
  const { name, kind, unit, attributes, buckets, description } = instrument;

  it("is named by the conventions of OpenTelemetry", () => {
    expect(name).toMatch(/^floodgate\.rate_limiting(\.[a-z]+(_[a-z]+)*)+$/);
    // A unit is metadata, and stands in no name.
    expect(name).not.toMatch(/second|_ms|_total|_count$/);
    expect(names.filter((other) => other.startsWith(`${name}.`))).toEqual([]);
    expect(unit).toMatch(/^(s|\{[a-z]+\})$/);
    // Annotations are in the singular.
    expect(unit).not.toMatch(/[^s]s\}$/);
  });

  it("is named by the conventions of Prometheus", () => {
    const theirs = prometheusName(instrument);
    expect(theirs).toMatch(/^floodgate_rate_limiting_[a-z_]+$/);
    expect(theirs.endsWith("_total")).toBe(kind === "counter");
    expect(/_seconds(_total)?$/.test(theirs)).toBe(unit === "s");
    for (const attribute of attributes) expect(prometheusLabel(attribute)).toMatch(/^[a-z_]+$/);
  });

  it("has buckets that rise if it is a histogram", () => {
    expect(buckets !== undefined).toBe(kind === "histogram");
    expect(buckets).toEqual(buckets && [...buckets].sort((a, b) => a - b));
  });

  it("is a row of the README", () => {
    const kindThere = kind === "sum" ? "gauge (OTel: up-down counter)" : kind;
    const labels = ["", attributes.map((attribute) => `\`${attribute}\``).join(", "), ""].join(" ").replace(/ +/g, " ");
    expect(readme).toContain(
      `| \`${name}\` <br> \`${prometheusName(instrument)}\` | ${kindThere} | \`${unit}\` |${labels}| ${description} |`,
    );
  });
});

it("the README has no other metrics, in its table or its queries", () => {
  const known = new Set(all.map(prometheusName));
  const named = [...readme.matchAll(/\bfloodgate_rate_limiting_\w+/g)].map(([name]) => name.replace(/_bucket$/, ""));
  expect(named.length).toBeGreaterThan(all.length);
  expect(named.filter((name) => !known.has(name))).toEqual([]);
  expect(new Set([...readme.matchAll(/`(floodgate\.rate_limiting\.[a-z_.]+)` <br>/g)].map(([, name]) => name))).toEqual(new Set(names));
});
