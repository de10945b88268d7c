using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [(name = "runs", worker = .runs)],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "runs")],
);

const runs :Workerd.Worker = (
  modules = [(name = "workerd.mjs", esModule = embed "workerd.mjs")],
  compatibilityDate = "2026-01-01",
  bindings = [(name = "RUNS", durableObjectNamespace = "Runs")],
  durableObjectNamespaces = [(className = "Runs", uniqueKey = "runs")],
  durableObjectStorage = (inMemory = void),
);
