import { startPlatform } from "@depute/cli";

/** The tasks service with the services that it asks, as a process of its own: started with its data folder. Tells its addresses. */

// All messages are by the same two agents.
const RATES = Array(5).fill("1000000000").join(",");
const [folder = ""] = process.argv.slice(2);
process.on("disconnect", () => process.exit());
const { host } = await startPlatform({
  modules: ["tokens", "verifier", "registry", "tasks"],
  listen: ["registry", "tasks"],
  args: [
    "--data-dir",
    folder,
    "--registry-port",
    "0",
    "--tasks-port",
    "0",
    "--log-level",
    "error",
    "--asp-message-rates",
    RATES,
  ],
  name: "bench",
  description: "",
});
const { registry = "", tasks = "" } = host.urls;
process.send?.({ registry: new URL(registry).host, tasks: new URL(tasks).host });
