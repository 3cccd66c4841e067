import { createLimiter, type Policy } from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";
import type { Page } from "playwright-core";
import { stateText } from "../../../packages/simulator/src/page/algorithms/draw/picture.js";

/** What a lane shows at a moment. */
export interface Shown {
  readonly state: string;
  readonly allowed: number;
  readonly limited: number;
  readonly delayed: number;
  readonly most: number;
}

/** What each lane shows now. */
export function shownIn(page: Page): Promise<Shown[]> {
  return page.$$eval(".lane", readLanes);
}

/** Moves the clock from the start to the end, and reads all lanes at each step. */
export async function playedIn(page: Page): Promise<{ readonly atMs: number; readonly lanes: Shown[] }[]> {
  return page.evaluate((read) => {
    const lanesOf = new Function(`return (${read})`)() as typeof readLanes;
    const ruler = document.querySelector("[role=slider]") as HTMLElement;
    const press = (key: string) => ruler.dispatchEvent(new KeyboardEvent("keydown", { key }));
    press("Home");
    return Array.from({ length: 201 }, () => {
      const lanes = lanesOf([...document.querySelectorAll(".lane")]);
      const atMs = Number(ruler.getAttribute("aria-valuenow"));
      press("ArrowRight");
      return { atMs, lanes };
    });
  }, readLanes.toString());
}

function readLanes(lanes: readonly Element[]): Shown[] {
  const number = (lane: Element, name: string) => Number((lane.querySelector(`.${name} b`)?.textContent ?? "").replaceAll(",", ""));
  return lanes.map((lane) => ({
    state: lane.querySelector("figcaption")?.textContent ?? "",
    allowed: number(lane, "allowed"),
    limited: number(lane, "limited"),
    delayed: number(lane, "delayed"),
    most: number(lane, "most"),
  }));
}

/** What a limiter with a memory store does with the same requests up to each moment; the busiest window is counted by brute force. */
export function expected(policy: Policy, times: readonly number[], windowMs: number, moments: readonly number[]): Shown[] {
  let nowMs = 0;
  const limiter = createLimiter({ name: "lane", policy, store: memoryStore({ clock: () => nowMs }) });
  const passed: number[] = [];
  let [next, limited, delayed, most] = [0, 0, 0, 0];
  return moments.map((moment) => {
    for (; next < times.length && (times[next] as number) <= moment; next++) {
      nowMs = times[next] as number;
      const decision = limiter.consume("client");
      if (!decision.allowed) {
        limited++;
        continue;
      }
      if (decision.delayMs > 0) delayed++;
      const atMs = nowMs + decision.delayMs;
      passed.push(atMs);
      most = Math.max(most, passed.filter((ms) => ms > atMs - windowMs && ms <= atMs).length);
    }
    nowMs = moment;
    const { decision, states } = limiter.keyState("client");
    const state = stateText(policy, { view: states[0].state, decision }, moment);
    return { state, allowed: passed.length, limited, delayed, most };
  });
}
