import type { LiveFigures } from "../contract.js";
import { liveAddress } from "./api.js";

/** `paused`: the tab is hidden, so nothing is asked for. */
export type Connection = "connecting" | "live" | "lost" | "paused";

/** Figures come once a second. A stream that is silent for so long is dead, whatever TCP says. */
const silenceMs = 6000;
const firstRetryMs = 500;
const longestRetryMs = 15_000;

/** Follows the stream of figures. It connects again when it is lost, after a sleep, and when the tab is looked at again. */
export function followFigures(onFigures: (figures: LiveFigures) => void, onConnection: (connection: Connection) => void): void {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;

  const close = (): void => {
    clearTimeout(timer);
    source?.close();
    source = undefined;
  };
  /** The server ends each stream after a while, so only a second failure is shown. */
  const retry = (): void => {
    close();
    failures++;
    if (failures > 1) onConnection("lost");
    timer = setTimeout(open, Math.min(longestRetryMs, firstRetryMs * 2 ** (failures - 1)));
  };
  const expectSign = (): void => {
    clearTimeout(timer);
    timer = setTimeout(retry, silenceMs);
  };
  const open = (): void => {
    close();
    if (failures === 0) onConnection("connecting");
    const opened = new EventSource(liveAddress());
    source = opened;
    expectSign();
    // An event may be under way while its source is closed.
    const on = (type: string, listener: (data: string) => void): void =>
      opened.addEventListener(type, (event) => opened === source && listener((event as MessageEvent<string>).data));
    on("open", () => {
      failures = 0;
      expectSign();
      onConnection("live");
    });
    on("figures", (data) => {
      expectSign();
      onFigures(JSON.parse(data));
    });
    // The browser's own attempts give up for good on an error status, so the attempts are ours.
    on("error", retry);
  };
  const look = (): void => {
    close();
    failures = 0;
    if (document.hidden) onConnection("paused");
    else open();
  };

  document.addEventListener("visibilitychange", look);
  // Back from the browser's page cache.
  addEventListener("pageshow", (event) => event.persisted && look());
  addEventListener("online", look);
  look();
}
