import { moment } from "@floodgate/pages/format";
import { foreign } from "@floodgate/pages/view/elements";
import { type ComponentChildren, render, type TargetedMouseEvent, type VNode } from "preact";
import { useId } from "preact/hooks";
import type { KeyAnswer, KeyRuleState, KeyTarget } from "../../contract.js";
import { act } from "../api.js";
import { NameSelect } from "../sections/section.js";

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

interface ActionsProps {
  readonly target: KeyTarget;
  readonly shown: string;
  readonly state: KeyRuleState;
  readonly run: (rule: string, done: string, action: () => Promise<unknown>) => Promise<void>;
}

/** What is asked before an action, and the action. */
interface Question {
  readonly title: string;
  readonly text: ComponentChildren;
  readonly act: () => Promise<KeyAnswer>;
  readonly done: string;
}

/** Buttons to reset, block and unblock a key under a rule, and to grant it another plan. */
export function Actions({ target, shown, state: { rule, atMs, block, grant, mayGrant }, run }: ActionsProps): VNode {
  const id = useId();
  const field = <Field extends HTMLElement>(name: string): Field => document.getElementById(`${name}-${id}`) as Field;
  const whom = [foreign(shown, "key"), " under ", foreign(rule)];
  /** @param question returns undefined if something must be chosen first. */
  const button = (text: string, question: () => Question | undefined, hidden = false): VNode => {
    const ask = async ({ currentTarget }: TargetedMouseEvent<HTMLButtonElement>): Promise<void> => {
      const asked = question();
      if (asked === undefined) return;
      currentTarget.disabled = true;
      if (await confirm(asked, text)) await run(rule, asked.done, asked.act);
      currentTarget.disabled = false;
      // Block and unblock take each other's place.
      const next = currentTarget.checkVisibility() ? currentTarget : currentTarget.closest(".buttons")?.querySelector("button");
      next?.focus();
    };
    return (
      <button type="button" hidden={hidden} onClick={ask}>
        {text}
      </button>
    );
  };
  const reset = (): Question => ({
    title: "Reset this key?",
    text: [...whom, " gets its whole limit back. What was counted is forgotten."],
    act: () => act("reset", target),
    done: "Reset.",
  });
  const blockFor = (): Question => {
    const { text, ms } = lengths[field<HTMLSelectElement>("block").selectedIndex] ?? lengths[2];
    // By the store's clock: the browser's may be wrong.
    const nowMs = atMs ?? Date.now();
    return {
      title: `Block this key for ${text}?`,
      text: ["Each request of ", ...whom, ` is rejected until ${moment(nowMs + ms, nowMs)}.`],
      act: () => act("block", { ...target, forMs: ms }),
      done: `Blocked for ${text}.`,
    };
  };
  const unblock = (): Question => ({
    title: "Unblock this key?",
    text: ["The block of ", ...whom, " ends now."],
    act: () => act("unblock", target),
    done: "Unblocked.",
  });
  const grantPlan = (): Question | undefined => {
    const plan = field<HTMLSelectElement>("plan").value;
    const untilMs = field<HTMLInputElement>("until").valueAsNumber;
    if (plan === "" || Number.isNaN(untilMs)) return undefined;
    return {
      title: "Grant this key another plan?",
      text: [...whom, " has the plan ", foreign(plan), ` until ${dateText(untilMs)}, in all processes. The rules are written.`],
      act: () => act("grant", { ...target, plan, untilMs }),
      done: `Granted until ${dateText(untilMs)}.`,
    };
  };
  const revoke = (): Question => ({
    title: "Revoke this grant?",
    text: [...whom, " loses the plan that was granted."],
    act: () => act("revoke", target),
    done: "Revoked.",
  });
  return (
    <div class="row buttons">
      {button("Reset", reset)}
      <span class="row" hidden={block !== undefined}>
        {button("Block", blockFor)}
        <label for={`block-${id}`}>for</label>
        <select id={`block-${id}`}>
          {lengths.map(({ text }, i) => (
            <option selected={i === 2}>{text}</option>
          ))}
        </select>
      </span>
      {button("Unblock", unblock, block === undefined)}
      <span class="row" hidden={grant !== undefined || mayGrant === undefined || mayGrant.length === 0}>
        {button("Grant", grantPlan)}
        <label for={`plan-${id}`}>plan</label>
        <NameSelect id={`plan-${id}`} names={mayGrant ?? []} />
        <label for={`until-${id}`}>until</label>
        <input id={`until-${id}`} type="date" defaultValue={dateText(Date.now() + 30 * day)} min={dateText(Date.now() + day)} />
      </span>
      {button("Revoke grant", revoke, grant === undefined || mayGrant === undefined)}
    </div>
  );
}

/** Asks before something is done. Cancel has the focus, Escape cancels, and the focus returns to where it was. */
function confirm({ title, text }: Question, yes: string): Promise<boolean> {
  const place = document.createElement("div");
  document.body.append(place);
  return new Promise((resolve) => {
    const close = ({ currentTarget }: { readonly currentTarget: HTMLDialogElement }): void => {
      place.remove();
      resolve(currentTarget.returnValue === "yes");
    };
    render(
      <dialog ref={(dialog) => dialog?.showModal()} onClose={close} aria-labelledby="confirm-title" aria-describedby="confirm-text">
        <form method="dialog">
          <h2 id="confirm-title">{title}</h2>
          <p id="confirm-text">{text}</p>
          <div class="row buttons">
            <button type="submit" value="no" autofocus>
              Cancel
            </button>
            <button type="submit" value="yes" class="danger">
              {yes}
            </button>
          </div>
        </form>
      </dialog>,
      place,
    );
  });
}
