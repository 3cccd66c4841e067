/** `signal` aborts at the first SIGINT or SIGTERM. A second one ends the process at once, until `ignore` is called. */
export function interruption(): { readonly signal: AbortSignal; readonly ignore: () => void } {
  const controller = new AbortController();
  // Without an exit of our own, process 1 of a container would ignore the second signal.
  const stop = (name: NodeJS.Signals): void => {
    if (controller.signal.aborted) process.exit(name === "SIGTERM" ? 143 : 130);
    controller.abort();
  };
  process.on("SIGINT", stop).on("SIGTERM", stop);
  return { signal: controller.signal, ignore: () => void process.off("SIGINT", stop).off("SIGTERM", stop) };
}
