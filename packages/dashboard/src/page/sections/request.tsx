import { count } from "@floodgate/pages/format";
import { Card, foreign, Table } from "@floodgate/pages/view/elements";
import type { ComponentChildren, TargetedSubmitEvent, VNode } from "preact";
import { useRef, useState } from "preact/hooks";
import type { RequestReason } from "../../contract.js";
import { askRequest } from "../api.js";
import { queryOf, type TypedRequest } from "../typed.js";
import { failure, field, plain } from "./section.js";

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"].map((method) => <option>{method}</option>);

/** Asks what each rule would say of a request. Nothing is charged. */
export function AskRequest(): VNode {
  const [said, say] = useState<ComponentChildren>();
  const [reasons, setReasons] = useState<readonly RequestReason[]>([]);
  const asked = useRef(0);
  const ask = async (event: TargetedSubmitEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    const own = ++asked.current;
    const typed = Object.fromEntries(new FormData(event.currentTarget)) as TypedRequest;
    say("Asking…");
    setReasons([]);
    try {
      const { verdict, rules } = await askRequest(queryOf(typed));
      if (own !== asked.current) return;
      say([<strong>{foreign(`${typed.method} ${typed.path.trim()}`)}</strong>, " ", foreign(verdict), "."]);
      setReasons(rules);
    } catch (error) {
      if (own === asked.current) say(failure(error));
    }
  };
  return (
    <Card id="request" title="Ask about a request" notes={<p>what each rule would say of it now; nothing is charged</p>}>
      <form class="ask" onSubmit={ask}>
        {field(
          "Method",
          <select id="request-method" name="method">
            {methods}
          </select>,
        )}
        {field("Path", <input id="request-path" name="path" required pattern={"/\\S*"} placeholder="/posts" {...plain} />, "grow")}
        {field("Client address", <input id="request-ip" name="ip" placeholder="203.0.113.7" {...plain} />)}
        <button type="submit" class="primary">
          Ask
        </button>
        <details class="more">
          <summary>Headers, keys and plan</summary>
          <div class="ask">
            {field("Headers, one a line", <textarea id="request-headers" name="headers" placeholder="x-api-key: abc" {...plain} />, "grow")}
            {field("Keys of the app, one a line", <textarea id="request-keys" name="keys" placeholder="user=42" {...plain} />, "grow")}
            {field("Plan", <input id="request-plan" name="plan" {...plain} />)}
          </div>
        </details>
      </form>
      <p class="said" role="status">
        {said}
      </p>
      <div class="scroll">
        {reasons.length > 0 && <Table look="folding" caption="What each rule says" columns={columns} rows={reasons.map(cellsOf)} />}
      </div>
    </Card>
  );
}

const columns = [
  { name: "Rule" },
  { name: "Says" },
  { name: "Key" },
  { name: "Policy", look: "quiet" },
  { name: "Used", look: "number" },
  { name: "Cost", look: "number" },
];

const cellsOf = ({ rule, mode, counts, words, key, policy, used, limit, cost }: RequestReason): ComponentChildren[] => [
  [foreign(rule, "name"), " ", mode === "shadow" && <span class="tag">shadow</span>],
  foreign(words, counts ? "" : "quiet"),
  key !== undefined && foreign(key, "key"),
  policy,
  used !== undefined && limit !== undefined && `${count(used)} of ${count(limit)}`,
  cost !== undefined && count(cost),
];
