// Starts the example, sends a burst until it responds with 429, prints the responses, and keeps serving.
import { createApp } from "./app.mjs";

const requests = 7;

if (process.argv.includes("--help")) {
  console.log("Usage: node demo.mjs\n\nServes on port 3000, on PORT if that is set, or on a spare one if it is taken.");
  process.exit(0);
}

const server = await listen(Number(process.env.PORT ?? 3000));
const url = `http://127.0.0.1:${server.address().port}`;
console.log(`Serving on ${url}, limited to 5 requests in 10 seconds for each client.\nSending ${requests}:\n`);

for (let i = 1; i <= requests; i++) {
  const response = await fetch(url);
  console.log(`${i}. GET /  ${response.status} ${response.statusText}`);
  for (const name of ["RateLimit-Policy", "RateLimit", "Retry-After"]) {
    const value = response.headers.get(name);
    if (value !== null) console.log(`   ${name}: ${value}`);
  }
  const body = await response.text();
  if (response.status === 429) console.log(`   ${body}`);
}

console.log(`
Still serving. Try, in another terminal:

  curl -i ${url}
  for i in 1 2 3 4; do curl -i --json '{"user":"ada"}' ${url}/login; done
  for i in 1 2 3 4 5; do curl -s -w ' after %{time_total} s\\n' ${url}/slow & done; wait

Ctrl-C stops it. The app is examples/express/app.mjs.`);

function listen(port) {
  return new Promise((resolve, reject) => {
    const started = createApp().listen(port, "127.0.0.1", (error) => {
      if (error === undefined) resolve(started);
      else if (error.code === "EADDRINUSE" && port !== 0) resolve(listen(0));
      else reject(error);
    });
  });
}
