import { startPlatform } from "depute";

/** Runs the platform in a separate process. The arguments are settings. The process reports the gateway's address. */

process.on("disconnect", () => process.exit());
const { host } = await startPlatform({
  modules: ["tokens", "verifier", "registry", "tasks", "gateway"],
  listen: ["gateway"],
  args: process.argv.slice(2),
  name: "bench",
  description: "",
});
process.send?.({ address: new URL(host.urls.gateway ?? "").host });
