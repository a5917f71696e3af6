import { afterEach, describe, expect, it, vi } from "vitest";
import { createLogger } from "./log.ts";
import { onStopSignal } from "./signals.ts";

const log = createLogger({ level: "silent", name: "test" });

afterEach(() => {
  vi.restoreAllMocks();
});

describe("onStopSignal", () => {
  it.each(["SIGTERM", "SIGINT"] as const)(
    "stops at the first %s and ends the process at the second",
    (signal) => {
      const before = new Set<unknown>(process.listeners(signal));
      const exit = vi.spyOn(process, "exit").mockImplementation(() => undefined as never);
      const stop = vi.fn(async () => {});
      const forget = onStopSignal(log, stop);
      const added = process.listeners(signal).filter((listener) => !before.has(listener));
      expect(added).toHaveLength(1);
      added[0]?.(signal);
      expect(stop).toHaveBeenCalledOnce();
      expect(exit).not.toHaveBeenCalled();
      added[0]?.(signal);
      expect(exit).toHaveBeenCalledWith(1);
      forget();
      expect(process.listeners(signal)).toHaveLength(before.size);
    },
  );
});
