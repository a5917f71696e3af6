import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";

const OBSERVED_MS = 200;
const MODULE = new URL("./compact-heap.ts", import.meta.url).href;

/**
 * Runs a process with garbage in its heap. @returns the megabytes of its heap before and after the code `during` runs
 */
function heapSizes(during: string): { readonly before: number; readonly after: number } {
  const program = `
    import { setTimeout as wait } from "node:timers/promises";
    import { compactHeapOnceIdle } from ${JSON.stringify(MODULE)};
    const heapMb = () => process.memoryUsage().heapTotal / 1e6;
    let garbage = Array.from({ length: 600_000 }, (_, n) => ({ n, text: "x" + n }));
    garbage = undefined;
    const before = heapMb();
    compactHeapOnceIdle(${OBSERVED_MS});
    ${during}
    console.log(JSON.stringify({ before, after: heapMb() }));
    process.exit();`;
  const words = ["--input-type=module", "--eval", program];
  return JSON.parse(execFileSync(process.execPath, words, { encoding: "utf8" }));
}

test("an idle process releases the memory of its start", () => {
  const { before, after } = heapSizes(`await wait(${5 * OBSERVED_MS});`);
  expect(after).toBeLessThan(before / 2);
});

test("a busy process is not paused", () => {
  const { before, after } = heapSizes(`
    const end = Date.now() + ${5 * OBSERVED_MS};
    while (Date.now() < end) {
      const turn = Date.now() + 20;
      while (Date.now() < turn);
      await wait(1);
    }`);
  expect(after).toBeGreaterThan(before / 2);
});
