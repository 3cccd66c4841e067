import { count, moment } from "@floodgate/pages/format";
import { Card, foreign, Table } from "@floodgate/pages/view/elements";
import type { ComponentChildren, VNode } from "preact";
import type { Top, TopKey } from "../../contract.js";
import type { SectionProps } from "./section.js";

interface ListWords {
  readonly id: string;
  readonly title: string;
  readonly unit: string;
  readonly empty: string;
  readonly list: keyof Top;
}

export const byRequests: ListWords = {
  id: "keys",
  title: "Top keys by requests",
  unit: "Requests",
  empty: "No key has sent a request yet.",
  list: "byRequests",
};

export const byRejections: ListWords = {
  id: "rejections",
  title: "Top keys by rejections",
  unit: "Rejections",
  empty: "No request has been rejected yet.",
  list: "byRejections",
};

interface TopKeysProps extends SectionProps {
  readonly words: ListWords;
  readonly onOpen: (key: TopKey) => void;
}

/** The heaviest keys. A count is an estimate: the hatched end of its bar is where the true count may lie. */
export function TopKeys({ figures: { overview, nowMs }, words, onOpen }: TopKeysProps): VNode {
  const { sinceMs, keys } = overview.top[words.list];
  const isEmpty = keys.length === 0;
  const most = keys[0]?.count ?? 1;
  const shadows = new Set(overview.rules.flatMap(({ name, mode }) => (mode === "shadow" ? [name] : [])));
  const clients = new Map<string, TopKey[]>();
  for (const key of keys) clients.set(key.id, [...(clients.get(key.id) ?? []), key]);
  const row = (rules: readonly TopKey[]): ComponentChildren[] => [
    <button type="button" class="link key" title="Look up this key" onClick={() => onOpen(rules[0] as TopKey)}>
      {foreign(rules[0]?.key ?? "")}
    </button>,
    <ul class="stack">{rules.map((key) => ruleLine(key, most, shadows.has(key.rule)))}</ul>,
  ];
  const rows = [...clients.values()].map(row);
  return (
    <Card id={words.id} title={words.title} look={`half ${isEmpty ? "none" : ""}`} notes={<p>since {moment(sinceMs, nowMs)}</p>}>
      <div class="scroll" hidden={isEmpty}>
        <Table look="top" caption={words.title} columns={[{ name: "Key" }, { name: words.unit }]} rows={rows} keys={[...clients.keys()]} />
      </div>
      {isEmpty && <p class="empty quiet">{words.empty}</p>}
      <p class="small quiet">{keys.some(({ error }) => error > 0) && "A count may be too high by the hatched end of its bar."}</p>
    </Card>
  );
}

/**
 * A rule that counted a client.
 * @param most the count of the heaviest key of the list.
 * @param shadow whether the rule rejects nobody.
 */
function ruleLine({ rule, count: upTo, error, blocked }: TopKey, most: number, shadow: boolean): VNode {
  const least = upTo - error;
  return (
    <li key={rule}>
      <span class="row who">
        <span class="quiet">
          {foreign(rule)}
          {shadow && " (shadow)"}
        </span>
        {blocked !== undefined && <span class="tag hot">{blocked.kind === "ban" ? "banned" : "blocked"}</span>}
        <span class="number">{error === 0 ? count(upTo) : `${count(least)} to ${count(upTo)}`}</span>
      </span>
      <span class="share" aria-hidden="true">
        <span class="sure" style={{ width: `${(100 * least) / most}%` }} />
        <span class="unsure" style={{ width: `${(100 * error) / most}%` }} />
      </span>
    </li>
  );
}
