import { type EventLoopUtilization, performance } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** The length of one observation of the event loop, in milliseconds. */
const OBSERVED_MS = 5_000;
/** If the event loop was busy for at most this fraction of an observation, the process counts as idle. */
const IDLE_UTILIZATION = 0.05;

type CollectGarbage = (options: { type: "major"; execution: "sync"; flavor: "last-resort" }) => void;

/**
 * Collects the garbage that the start of the process has left. V8 does not collect garbage in an idle process, so the
 * memory would stay in use until calls arrive. A collection halts the process for some tenths of a second. So this
 * function waits until the process has been idle for a whole observation.
 *
 * @param observedMs the length of each observation in milliseconds
 */
export function compactHeapOnceIdle(observedMs = OBSERVED_MS): void {
  let last: EventLoopUtilization = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    if (utilization > IDLE_UTILIZATION) return;
    clearInterval(timer);
    collectGarbage();
  }, observedMs);
  timer.unref();
}

/** Runs V8's garbage collector. Node exposes the collector only in contexts that are created after the flag is set. */
function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as CollectGarbage;
  setFlagsFromString("--no-expose-gc");
  // This flavor also returns freed pages to the operating system.
  collect({ type: "major", execution: "sync", flavor: "last-resort" });
}
