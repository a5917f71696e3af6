import { type ModuleName, onStopSignal } from "@depute/service";
import { parentGone } from "../lifeline.ts";
import { startPlatform } from "../platform.ts";

/** Milliseconds beyond the time to drain in which a process without its parent ends by force. */
const END_MS = 2_000;

/** `depute serve NAME`: one service in this process; the others are called at their addresses. */
export async function serve(name: ModuleName, args: readonly string[]): Promise<void> {
  const gone = parentGone();
  const platform = await startPlatform({
    modules: [name],
    listen: [name],
    args,
    name: `depute serve ${name}`,
    description: `Runs the ${name} apart; the other services are called at their addresses.`,
  });
  const { log, settings, stop } = platform;
  onStopSignal(log, stop);
  void gone.then(() => {
    log.warn("the process that started this one is gone; stopping");
    setTimeout(() => process.exit(1), settings.drainTimeout + END_MS).unref();
    stop().catch((err: unknown) => {
      log.fatal({ err }, "stopping failed");
      process.exitCode = 1;
    });
  });
  console.log(`${name} listens on ${platform.host.urls[name]}`);
}
