import { type ModuleName, onStopSignal, SettingsError } from "@depute/service";
import { compactHeapOnceIdle } from "../compact-heap.ts";
import { isModuleName, MODULE_NAMES } from "../load-modules.ts";
import { parentGone } from "../parent-exit.ts";
import { startPlatform } from "../platform.ts";

/**
 * When the parent process has ended, this process drains. If this process still runs this many milliseconds after the
 * drain timeout, it exits.
 */
const END_MS = 2_000;

/**
 * `depute serve NAME`: runs one service in this process. The service calls the other services at their configured
 * addresses.
 */
export async function serve(name: ModuleName, args: readonly string[]): Promise<void> {
  const parentEnded = parentGone();
  const platform = await startPlatform({
    modules: [name],
    listen: [name],
    args,
    name: `depute serve ${name}`,
    description: `Runs the ${name} apart; the other services are called at their addresses.`,
  });
  const { log, settings, stop } = platform;
  onStopSignal(log, stop);
  void parentEnded.then(() => {
    log.warn("the parent process has ended; stopping");
    setTimeout(() => process.exit(1), settings.drainTimeout + END_MS).unref();
    stop().catch((err: unknown) => {
      log.fatal({ err }, "stopping failed");
      process.exitCode = 1;
    });
  });
  console.log(`${name} listens on ${platform.host.urls[name]}`);
  compactHeapOnceIdle();
}

/** `depute serve NAME`, from the words of the command line. @throws SettingsError if NAME is not a service */
export async function serveNamed(words: readonly string[]): Promise<void> {
  const [name, ...rest] = words;
  if (isModuleName(name)) return serve(name, rest);
  throw new SettingsError(`serve needs the name of a service; it is one of: ${MODULE_NAMES.join(", ")}`);
}
