import { count } from "@floodgate/pages/format";
import { Card, foreign, Table } from "@floodgate/pages/view/elements";
import type { ComponentChildren, TargetedSubmitEvent, VNode } from "preact";
import { useRef, useState } from "preact/hooks";
import type { RequestReason } from "../../contract.js";
import { askRequest } from "../api.js";
import { queryOf, type TypedRequest } from "../typed.js";
import { failure } from "./section.js";

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

const plain = { class: "key", autocomplete: "off", autocapitalize: "off", spellcheck: false } as const;

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
        <div>
          <label for="request-method">Method</label>
          <select id="request-method" name="method">
            {methods.map((method) => (
              <option>{method}</option>
            ))}
          </select>
        </div>
        <div class="grow">
          <label for="request-path">Path</label>
          <input id="request-path" name="path" required pattern={"/\\S*"} placeholder="/posts" {...plain} />
        </div>
        <div>
          <label for="request-ip">Client address</label>
          <input id="request-ip" name="ip" placeholder="203.0.113.7" {...plain} />
        </div>
        <button type="submit" class="primary">
          Ask
        </button>
        <details class="more">
          <summary>Headers, keys and plan</summary>
          <div class="ask">
            <div class="grow">
              <label for="request-headers">Headers, one a line</label>
              <textarea id="request-headers" name="headers" rows={2} placeholder="x-api-key: abc" {...plain} />
            </div>
            <div class="grow">
              <label for="request-keys">Keys of the app, one a line</label>
              <textarea id="request-keys" name="keys" rows={2} placeholder="user=42" {...plain} />
            </div>
            <div>
              <label for="request-plan">Plan</label>
              <input id="request-plan" name="plan" {...plain} />
            </div>
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
