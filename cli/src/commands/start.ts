import { onStopSignal, SERVICES } from "@depute/service";
import { compactHeapOnceIdle } from "../compact-heap.ts";
import { MODULE_NAMES } from "../load-modules.ts";
import { startPlatform } from "../platform.ts";
import { welcome } from "../welcome.ts";

const ONE_PORT =
  "all services share the gateway's port here; use --gateway-port, depute serve or depute cluster";
const UNUSED = Object.fromEntries(SERVICES.map((name) => [`${name}Port`, ONE_PORT]));

/** `depute start`: runs all services and the gateway in this process. Only the gateway's port listens. */
export async function start(args: readonly string[]): Promise<void> {
  const platform = await startPlatform({
    modules: MODULE_NAMES,
    listen: ["gateway"],
    args,
    name: "depute start",
    unused: UNUSED,
    description: "Runs the whole platform in one process: SQLite files, no other server needed.",
  });
  onStopSignal(platform.log, platform.stop);
  console.log(welcome(platform.host.urls.gateway ?? "", platform.settings));
  compactHeapOnceIdle();
}
