import { fill, foreign, h, visible } from "@floodgate/pages/dom";
import { moment } from "@floodgate/pages/format";
import type { KeyName, KeyRuleState } from "../../contract.js";
import { block, grant, reset, revoke, unblock } from "../api.js";

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
  readonly act: (done: string, action: () => Promise<unknown>) => Promise<void>;
}

/** Buttons to reset, block and unblock a key under a rule, and to grant it another plan. */
export function actions(acting: Acting): { readonly element: HTMLElement; update(state: KeyRuleState): void } {
  const { name, rule, shown, act } = acting;
  const target = { ...name, rule };
  const whom = (): Node[] => [foreign(shown, "key"), document.createTextNode(" under "), foreign(rule)];
  const id = `block-length-${++made}`;
  const planId = `grant-plan-${made}`;
  const untilId = `grant-until-${made}`;
  const plan = h("select", { id: planId });
  const until = h("input", { id: untilId, type: "date", value: dateText(Date.now() + 30 * day), min: dateText(Date.now() + day) });
  let plans: readonly string[] = [];
  const grantButton = button("Grant", async () => {
    const untilMs = until.valueAsNumber;
    const chosen = plans[plan.selectedIndex];
    if (chosen === undefined || Number.isNaN(untilMs)) return;
    const yes = await confirm({
      title: "Grant this key another plan?",
      text: [...whom(), " has the plan ", foreign(chosen), ` until ${dateText(untilMs)}, in all processes. The rules are written.`],
      yes: "Grant",
    });
    if (yes) await act(`Granted until ${dateText(untilMs)}.`, () => grant({ ...target, plan: chosen, untilMs }));
  });
  const revokeButton = button("Revoke grant", async () => {
    const yes = await confirm({ title: "Revoke this grant?", text: [...whom(), " loses the plan that was granted."], yes: "Revoke" });
    if (yes) await act("Revoked.", () => revoke(target));
  });
  const granting = h(
    "span",
    { class: "row" },
    grantButton,
    h("label", { for: planId }, "plan"),
    plan,
    h("label", { for: untilId }, "until"),
    until,
  );
  const length = h("select", { id }, ...lengths.map(({ text }, i) => h("option", { selected: i === 2 }, text)));
  const resetButton = button("Reset", async () => {
    const yes = await confirm({
      title: "Reset this key?",
      text: [...whom(), " gets its whole limit back. What was counted is forgotten."],
      yes: "Reset",
    });
    if (yes) await act("Reset.", () => reset(target));
  });
  const blockButton = button("Block", async () => {
    const { text, ms } = lengths[length.selectedIndex] ?? lengths[2];
    const yes = await confirm({
      title: `Block this key for ${text}?`,
      text: ["Each request of ", ...whom(), ` is rejected until ${moment(Date.now() + ms, Date.now())}.`],
      yes: "Block",
    });
    if (yes) await act(`Blocked for ${text}.`, () => block({ ...target, forMs: ms }));
  });
  const unblockButton = button("Unblock", async () => {
    const yes = await confirm({ title: "Unblock this key?", text: ["The block of ", ...whom(), " ends now."], yes: "Unblock" });
    if (yes) await act("Unblocked.", () => unblock(target));
  });
  const blocking = h("span", { class: "row" }, blockButton, h("label", { for: id }, "for"), length);
  return {
    element: h("div", { class: "row buttons" }, resetButton, blocking, unblockButton, granting, revokeButton),
    update(state) {
      const { mayGrant = [], grant: given } = state;
      granting.hidden = mayGrant.length === 0 || given !== undefined;
      revokeButton.hidden = given === undefined || state.mayGrant === undefined;
      if (mayGrant.join("\n") !== plans.join("\n")) {
        plans = mayGrant;
        fill(plan, ...plans.map((name) => h("option", { dir: "auto" }, visible(name, 60))));
      }
      unblockButton.hidden = state.block === undefined;
      blocking.hidden = state.block !== undefined;
    },
  };
}

let made = 0;

function button(text: string, onClick: () => Promise<void>): HTMLButtonElement {
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
function confirm(question: { readonly title: string; readonly text: readonly (Node | string)[]; readonly yes: string }): Promise<boolean> {
  const cancel = h("button", { type: "submit", value: "no", autofocus: true }, "Cancel");
  const dialog = h(
    "dialog",
    { "aria-labelledby": "confirm-title", "aria-describedby": "confirm-text" },
    h(
      "form",
      { method: "dialog" },
      h("h2", { id: "confirm-title" }, question.title),
      h("p", { id: "confirm-text" }, ...question.text),
      h("div", { class: "row buttons" }, cancel, h("button", { type: "submit", value: "yes", class: "danger" }, question.yes)),
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
