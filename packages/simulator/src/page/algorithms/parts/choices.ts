import { formatDuration } from "@floodgate/core/rules";
import { h, say, visible } from "@floodgate/pages/dom";
import { inLargeUnits } from "../../../compare/policy-text.js";
import { type ScenarioName, scenarios } from "../model/scenarios.js";
import { maxLimit, maxSeed, type Settings, wholeNumber, windowOf } from "../model/settings.js";

/** Which requests are played, and the limit that all policies share. */
export interface Choices {
  readonly element: HTMLElement;
  show(settings: Settings): void;
}

/** @param onChange is called with what changed. Another scenario or limit removes the person's own requests; another limit, also the edits. */
export function makeChoices(onChange: (change: Partial<Settings>) => void): Choices {
  const radios = (Object.keys(scenarios) as ScenarioName[]).map((name) => {
    const input = h("input", { type: "radio", name: "scenario", value: name });
    input.addEventListener("change", () => onChange({ scenario: name, sent: [] }));
    return { name, input, label: h("label", {}, input, h("span", {}, scenarios[name].title)) };
  });
  const text = h("p", { class: "story" });
  const clear = h("button", { type: "button" }, "Remove my requests");
  const error = h("p", { class: "problem", role: "alert" });
  const field = (name: string, most: number, change: (text: string) => Partial<Settings>): HTMLInputElement => {
    const input = h("input", { type: "text", size: 5, maxlength: most, autocomplete: "off", spellcheck: "false" });
    input.addEventListener("change", () => {
      try {
        const changed = change(input.value.trim());
        say(error, "");
        input.removeAttribute("aria-invalid");
        onChange(changed);
      } catch (thrown) {
        input.setAttribute("aria-invalid", "true");
        say(error, visible(`${name}: ${(thrown as Error).message}`));
      }
    });
    return input;
  };
  const limit = field("Limit", 6, (text) => ({ limit: wholeNumber(text, 1, maxLimit), edited: {}, sent: [] }));
  const window = field("Window", 8, (text) => ({ windowMs: windowOf(text), edited: {}, sent: [] }));
  const seed = field("Seed", 10, (text) => ({ seed: wholeNumber(text, 0, maxSeed) }));
  for (const input of [limit, seed]) input.inputMode = "numeric";
  const seedLabel = h("label", {}, "Seed ", seed);
  clear.addEventListener("click", () => onChange({ sent: [] }));
  const form = h(
    "form",
    { class: "choices" },
    h("fieldset", { class: "choice" }, h("legend", { class: "hidden-text" }, "Requests"), ...radios.map(({ label }) => label)),
    h("div", { class: "row shared" }, h("label", {}, "Limit ", limit), h("label", {}, "in ", window), seedLabel, clear),
    error,
    text,
  );
  form.addEventListener("submit", (event) => event.preventDefault());
  return {
    element: form,
    show(settings) {
      for (const { name, input } of radios) input.checked = name === settings.scenario;
      limit.value = String(settings.limit);
      window.value = inLargeUnits(`${settings.windowMs}ms`);
      seed.value = String(settings.seed);
      seedLabel.hidden = settings.scenario !== "random";
      clear.hidden = settings.sent.length === 0;
      say(text, scenarios[settings.scenario].text(settings.limit, formatDuration(settings.windowMs)));
    },
  };
}
