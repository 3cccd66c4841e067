// Starts the app with traffic of its own, and Prometheus if it is installed. Prints where to look, and serves until it is stopped.
import { createApp } from "./app.mjs";
import { alerts, startPrometheus } from "./prometheus.mjs";
import { startTraffic } from "./traffic.mjs";

if (process.argv.includes("--help")) {
  console.log("Usage: node demo.mjs\n\nServes on port 3000, on PORT if that is set, or on a spare one if it is taken.");
  process.exit(0);
}

const server = await listen(Number(process.env.PORT ?? 3000));
const address = `127.0.0.1:${server.address().port}`;
const url = `http://${address}`;
const stopTraffic = startTraffic(url);
const prometheus = await startPrometheus(address);

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, async () => {
    stopTraffic();
    server.close();
    server.closeAllConnections();
    await prometheus?.stop();
    process.exit();
  });
}

console.log(`The app:     ${url}  (with visitors, a burst every 15 seconds, a queue, and someone who tries passwords)
Dashboard:   ${url}/_floodgate
Metrics:     ${url}/metrics`);
if (prometheus === undefined) {
  console.log(`Prometheus:  is not installed. Install it (apt-get install prometheus, or brew install prometheus) and start this again,
             or let yours scrape ${address} with the alert rules in
             ${alerts}`);
} else {
  console.log(`Prometheus:  ${prometheus.url}/graph?g0.expr=sum+by+(rule,result)+(rate(floodgate_rate_limiting_requests_total[1m]))
Alerts:      ${prometheus.url}/alerts`);
}
console.log("\nCtrl-C stops it. The app is examples/observability/app.mjs.");

function listen(port) {
  return new Promise((resolve, reject) => {
    const started = createApp().listen(port, "127.0.0.1", (error) => {
      if (error === undefined) resolve(started);
      else if (error.code === "EADDRINUSE" && port !== 0) resolve(listen(0));
      else reject(error);
    });
  });
}
