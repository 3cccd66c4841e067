# The worker on workerd, the runtime of Cloudflare Workers. `node workerd.mjs` bundles it first, and chooses the port.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [(name = "example", worker = .worker)],
  sockets = [(name = "http", service = "example", http = ())]
);

const worker :Workerd.Worker = (
  modules = [(name = "worker.mjs", esModule = embed "dist/worker.mjs")],
  compatibilityDate = "2026-11-01"
);
