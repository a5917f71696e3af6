import { startPlatform } from "depute";

/**
 * Runs the tasks service and its dependencies in a separate process. The argument is the data folder. The process
 * reports its addresses.
 */

// All messages come from the same two agents, so the limits of messages per minute are raised.
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
