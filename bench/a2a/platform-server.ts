import { MODULE_NAMES, startPlatform } from "depute";

/** Runs the platform in a separate process. The argument is the data folder. The process reports its address. */

const [folder = ""] = process.argv.slice(2);
process.on("disconnect", () => process.exit());
const { host } = await startPlatform({
  modules: MODULE_NAMES,
  listen: ["gateway"],
  args: ["--data-dir", folder, "--gateway-port", "0", "--log-level", "error"],
  name: "bench",
  description: "",
});
process.send?.({ url: host.urls.gateway });
