const cleanups = new Set<() => void>();

/** Runs a cleanup when this process exits, unless it is cancelled earlier. */
export function atExit(cleanup: () => void): () => void {
  if (cleanups.size === 0) process.on("exit", cleanUp);
  cleanups.add(cleanup);
  return () => {
    cleanups.delete(cleanup);
    if (cleanups.size === 0) process.off("exit", cleanUp);
  };
}

function cleanUp(): void {
  for (const cleanup of cleanups) cleanup();
}
