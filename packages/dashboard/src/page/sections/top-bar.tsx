import { foreign } from "@floodgate/pages/view/elements";
import type { VNode } from "preact";
import { useEffect } from "preact/hooks";
import type { Range } from "../../contract.js";
import type { Connection } from "../live.js";
import type { Model } from "../model.js";
import { rangeWords } from "./section.js";

const connectionWords: Record<Connection, { readonly text: string; readonly look: string }> = {
  connecting: { text: "Connecting…", look: "" },
  live: { text: "Live", look: "good" },
  lost: { text: "Not connected, trying again", look: "bad" },
  paused: { text: "Paused", look: "" },
};

const parts = { lookup: "Look up a key", traffic: "Traffic", rules: "Rules", keys: "Keys", stores: "Store" };

/** The name of the app, the ways to the parts of the page, the range of its figures, and whether they are live. */
export function TopBar({ model }: { readonly model: Model }): VNode {
  const name = model.figures?.overview.title ?? "Floodgate";
  useEffect(() => {
    document.title = name;
  }, [name]);
  const { text, look } = connectionWords[model.connection];
  return (
    <header class="bar row">
      <div class="brand">
        {mark}
        <span>{foreign(name)}</span>
      </div>
      <nav aria-label="Parts of this page">
        <ul class="row">
          {Object.entries(parts).map(([id, part]) => (
            <li>
              <a href={`#${id}`}>{part}</a>
            </li>
          ))}
        </ul>
      </nav>
      <div class="end row">
        <span class={`state ${look}`} role="status">
          {text}
        </span>
        <fieldset class="choice">
          <legend class="hidden-text">Show the last</legend>
          {(Object.keys(rangeWords) as Range[]).map((range) => (
            <label>
              <input type="radio" name="range" value={range} checked={range === model.range} onChange={() => model.choose(range)} />
              <span>{range[0]?.toUpperCase() + range.slice(1)}</span>
            </label>
          ))}
        </fieldset>
      </div>
    </header>
  );
}

/** A gate that lets some of the water through. */
const mark = (
  <svg viewBox="0 0 24 24" aria-hidden="true">
    <path d="M5 3v18M19 3v18M5 8h14M9 8v5M12 8v5M15 8v5" />
    <path d="M2 19c2 0 2-1.5 4-1.5s2 1.5 4 1.5 2-1.5 4-1.5 2 1.5 4 1.5 2-1.5 4-1.5" />
  </svg>
);
