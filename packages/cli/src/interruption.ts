/** Ends at the first SIGINT or SIGTERM. A second one ends the process, as without this. Call `ignore` when the work is done. */
export function interruption(): { readonly signal: AbortSignal; readonly ignore: () => void } {
  const controller = new AbortController();
  const stop = (): void => controller.abort();
  const signals = ["SIGINT", "SIGTERM"] as const;
  for (const name of signals) process.once(name, stop);
  return {
    signal: controller.signal,
    ignore: () => {
      for (const name of signals) process.removeListener(name, stop);
    },
  };
}
