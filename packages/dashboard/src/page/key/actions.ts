import { foreign, h } from "@floodgate/pages/dom";
import { moment } from "@floodgate/pages/format";
import type { KeyAnswer, KeyName, KeyRuleState } from "../../contract.js";
import { act } from "../api.js";
import { nameSelect } from "../sections/section.js";

const lengths = [
  { text: "1 minute", ms: 60_000 },
  { text: "15 minutes", ms: 900_000 },
  { text: "1 hour", ms: 3_600_000 },
  { text: "1 day", ms: 86_400_000 },
  { text: "30 days", ms: 2_592_000_000 },
] as const;

const day = 86_400_000;

/** A date as the browser's field has it: `2027-01-31`. */
const dateText = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

interface Acting {
  readonly name: KeyName;
  readonly shown: string;
  readonly rule: string;
  readonly run: (done: string, action: () => Promise<unknown>) => Promise<void>;
}

/** What is asked before an action, and the action. */
interface Question {
  readonly title: string;
  readonly text: readonly (Node | string)[];
  readonly act: () => Promise<KeyAnswer>;
  readonly done: string;
}

/** Buttons to reset, block and unblock a key under a rule, and to grant it another plan. */
export function actions({ name, rule, shown, run }: Acting): { readonly element: HTMLElement; update(state: KeyRuleState): void } {
  const target = { ...name, rule };
  const whom = (): (Node | string)[] => [foreign(shown, "key"), " under ", foreign(rule)];
  /** @param question undefined if something must be chosen first. */
  const button = (text: string, question: () => Question | undefined): HTMLElement =>
    actionButton(text, async () => {
      const asked = question();
      if (asked !== undefined && (await confirm(asked, text))) await run(asked.done, asked.act);
    });
  const label = (control: HTMLElement, text: string): HTMLElement => h("label", { for: control.id }, text);
  const id = ++made;
  /** By the store's clock: the browser's may be wrong. */
  let nowMs = Date.now();

  const resetButton = button("Reset", () => ({
    title: "Reset this key?",
    text: [...whom(), " gets its whole limit back. What was counted is forgotten."],
    act: () => act("reset", target),
    done: "Reset.",
  }));

  const length = h("select", { id: `block-length-${id}` }, ...lengths.map(({ text }, i) => h("option", { selected: i === 2 }, text)));
  const blockButton = button("Block", () => {
    const { text, ms } = lengths[length.selectedIndex] ?? lengths[2];
    return {
      title: `Block this key for ${text}?`,
      text: ["Each request of ", ...whom(), ` is rejected until ${moment(nowMs + ms, nowMs)}.`],
      act: () => act("block", { ...target, forMs: ms }),
      done: `Blocked for ${text}.`,
    };
  });
  const blocking = h("span", { class: "row" }, blockButton, label(length, "for"), length);
  const unblockButton = button("Unblock", () => ({
    title: "Unblock this key?",
    text: ["The block of ", ...whom(), " ends now."],
    act: () => act("unblock", target),
    done: "Unblocked.",
  }));

  const plans = nameSelect(`grant-plan-${id}`);
  const until = h("input", {
    id: `grant-until-${id}`,
    type: "date",
    value: dateText(Date.now() + 30 * day),
    min: dateText(Date.now() + day),
  });
  const grantButton = button("Grant", () => {
    const plan = plans.chosen();
    const untilMs = until.valueAsNumber;
    if (plan === undefined || Number.isNaN(untilMs)) return undefined;
    return {
      title: "Grant this key another plan?",
      text: [...whom(), " has the plan ", foreign(plan), ` until ${dateText(untilMs)}, in all processes. The rules are written.`],
      act: () => act("grant", { ...target, plan, untilMs }),
      done: `Granted until ${dateText(untilMs)}.`,
    };
  });
  const granting = h("span", { class: "row" }, grantButton, label(plans.element, "plan"), plans.element, label(until, "until"), until);
  const revokeButton = button("Revoke grant", () => ({
    title: "Revoke this grant?",
    text: [...whom(), " loses the plan that was granted."],
    act: () => act("revoke", target),
    done: "Revoked.",
  }));

  return {
    element: h("div", { class: "row buttons" }, resetButton, blocking, unblockButton, granting, revokeButton),
    update({ atMs, block, grant, mayGrant }) {
      nowMs = atMs ?? nowMs;
      unblockButton.hidden = block === undefined;
      blocking.hidden = block !== undefined;
      granting.hidden = grant !== undefined || mayGrant === undefined || mayGrant.length === 0;
      revokeButton.hidden = grant === undefined || mayGrant === undefined;
      plans.offer(mayGrant ?? []);
    },
  };
}

let made = 0;

function actionButton(text: string, onClick: () => Promise<void>): HTMLButtonElement {
  const element = h("button", { type: "button" }, text);
  element.addEventListener("click", async () => {
    element.disabled = true;
    await onClick().finally(() => {
      element.disabled = false;
    });
    // Block and unblock take each other's place.
    const next = element.checkVisibility() ? element : element.closest(".buttons")?.querySelector("button");
    next?.focus();
  });
  return element;
}

/** Asks before something is done. Cancel has the focus, Escape cancels, and the focus returns to where it was. */
function confirm({ title, text }: Question, yes: string): Promise<boolean> {
  const cancel = h("button", { type: "submit", value: "no", autofocus: true }, "Cancel");
  const dialog = h(
    "dialog",
    { "aria-labelledby": "confirm-title", "aria-describedby": "confirm-text" },
    h(
      "form",
      { method: "dialog" },
      h("h2", { id: "confirm-title" }, title),
      h("p", { id: "confirm-text" }, ...text),
      h("div", { class: "row buttons" }, cancel, h("button", { type: "submit", value: "yes", class: "danger" }, yes)),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
  });
}
