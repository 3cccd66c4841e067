/** Sends traffic to the app until the returned function is called: visitors, bursts, a queue, and an abuser who gets banned. */
export function startTraffic(url) {
  const ask = (address, path = "/", method = "GET") =>
    fetch(`${url}${path}`, { method, headers: { "x-forwarded-for": address } })
      .then((response) => response.arrayBuffer())
      // The app may be stopping.
      .catch(() => undefined);
  const repeat = (everyMs, run) => {
    run();
    return setInterval(run, everyMs);
  };
  const times = (count, run) => {
    for (let i = 0; i < count; i++) run(i);
  };

  const timers = [
    // Five visitors who stay below their limits.
    repeat(3000, () => times(5, (i) => ask(`198.51.100.${i + 1}`))),
    // A client that sends more at once than its bucket holds.
    repeat(15_000, () => times(80, () => ask("198.51.100.77"))),
    // Reports, which wait in a queue.
    repeat(2000, () => times(6, (i) => ask(`198.51.100.${i + 10}`, "/reports"))),
    // Someone who tries passwords.
    repeat(200, () => ask("203.0.113.66", "/login", "POST")),
  ];
  return () => {
    for (const timer of timers) clearInterval(timer);
  };
}
