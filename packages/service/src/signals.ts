import type { Logger } from "./log.ts";

const SIGNALS = ["SIGTERM", "SIGINT"] as const;

/**
 * Runs `stop` at the first SIGTERM or SIGINT, and ends the process with exit code 1 at the second.
 *
 * @returns a function that removes the handlers
 */
export function onStopSignal(log: Logger, stop: () => Promise<void>): () => void {
  let stopping = false;
  const onSignal = (signal: NodeJS.Signals) => {
    if (stopping) process.exit(1);
    stopping = true;
    log.info({ signal }, "stopping");
    stop().catch((err: unknown) => {
      log.fatal({ err }, "stopping failed");
      process.exitCode = 1;
    });
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return () => {
    for (const signal of SIGNALS) process.off(signal, onSignal);
  };
}
