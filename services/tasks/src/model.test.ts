import fc from "fast-check";
import { test } from "vitest";
import { openBench } from "./testing/bench.ts";
import { COMMANDS, checkAll, type Model } from "./testing/commands.ts";

test("the service behaves like the model for any order of clients, workers, time and restarts", {
  timeout: 120_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.commands(COMMANDS, { size: "max", maxCommands: 100 }), async (commands) => {
      const bench = await openBench();
      const model: Model = { tasks: new Map(), leases: [], created: 0 };
      try {
        await fc.asyncModelRun(() => ({ model, real: bench }), commands);
        await checkAll(model, bench);
      } finally {
        await bench.close();
      }
    }),
    { numRuns: 50 },
  );
});
