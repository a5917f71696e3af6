import { type ModuleName, onStopSignal } from "@depute/service";
import { startPlatform } from "../platform.ts";

/** `depute serve NAME`: one service in this process; the others are called at their addresses. */
export async function serve(name: ModuleName, args: readonly string[]): Promise<void> {
  const platform = await startPlatform({
    modules: [name],
    listen: [name],
    args,
    name: `depute serve ${name}`,
    description: `Runs the ${name} apart; the other services are called at their addresses.`,
  });
  onStopSignal(platform.log, platform.stop);
  console.log(`${name} listens on ${platform.host.urls[name]}`);
}
