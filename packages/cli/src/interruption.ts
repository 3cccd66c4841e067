/**
 * `signal` aborts at the first SIGINT or SIGTERM. A second one ends the process at once, until `ignore` is called.
 * @param whenUnread whether it also aborts once standard output cannot be written, because its reader has left (`| head`).
 */
export function interruption(whenUnread = false): { readonly signal: AbortSignal; readonly ignore: () => void } {
  const controller = new AbortController();
  // Without an exit of our own, process 1 of a container would ignore the second signal.
  const stop = (name: NodeJS.Signals): void => {
    if (controller.signal.aborted) process.exit(name === "SIGTERM" ? 143 : 130);
    controller.abort();
  };
  const abort = (): void => controller.abort();
  process.on("SIGINT", stop).on("SIGTERM", stop);
  if (whenUnread) process.stdout.on("error", abort);
  const ignore = (): void => {
    process.off("SIGINT", stop).off("SIGTERM", stop);
    process.stdout.off("error", abort);
  };
  return { signal: controller.signal, ignore };
}
