import { count, duration } from "@floodgate/pages/format";
import { Card, foreign, Scroll, Table } from "@floodgate/pages/view/elements";
import type { ComponentChildren, VNode } from "preact";
import type { ReportClient, ReportRule } from "../model.js";
import { percent } from "../words.js";
import { bar } from "./section.js";

/** The clients with the most requests, and those that were limited most. */
export function Clients({ rule: { windowMs, heaviest } }: { readonly rule: ReportRule }): VNode {
  const most = Math.max(1, ...heaviest.map(({ requests }) => requests));
  const columns = [
    { name: "Client" },
    { name: "Requests", look: "number" },
    { name: "Limited", look: "number" },
    { name: "Share limited", look: "bar" },
    { name: `Most in ${duration(windowMs)}`, look: "number" },
    { name: "Longest lock-out", look: "number" },
  ];
  return (
    <Card id="clients" title="Heaviest clients">
      <p class="lead quiet">
        Those with the most requests, and those that the rule as it is limited most. A request that only other rules rejected does not count
        here.
      </p>
      <Scroll label="Table of clients">
        <Table caption="Heaviest clients" columns={columns} rows={heaviest.map((client) => cellsOf(client, most))} />
      </Scroll>
    </Card>
  );
}

const cellsOf = ({ name, requests, limited, peak, longestLockoutMs }: ReportClient, most: number): ComponentChildren[] => [
  foreign(name, "key"),
  count(requests),
  limited === 0 ? "none" : `${count(limited)} (${percent(limited, requests)})`,
  bar({ allowed: requests / most, limited: limited / most }),
  count(peak),
  limited === 0 ? "none" : duration(longestLockoutMs),
];
