/** Serves an app on Bun or Deno, and prints its address. */
export function serve(app) {
  const listening = (port) => console.log(`http://127.0.0.1:${port}`);
  if (globalThis.Bun !== undefined) {
    const { port } = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: app.fetch });
    listening(port);
  } else Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: ({ port }) => listening(port) }, app.fetch);
}
