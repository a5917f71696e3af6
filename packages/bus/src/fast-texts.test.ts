import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";

/** Whether String.prototype has its fast form in a process of its own, after what is imported. */
function isFastAfter(module: string): boolean {
  const code = `import ${JSON.stringify(module)}; console.log(%HasFastProperties(String.prototype))`;
  const options = ["--allow-natives-syntax", "--input-type=module", "--eval", code];
  return JSON.parse(execFileSync(process.execPath, options, { cwd: import.meta.dirname, encoding: "utf8" }));
}

test("ioredis makes texts slow, and the bus makes them fast again", () => {
  // Once this one is true, fast-texts.ts can go.
  expect(isFastAfter("ioredis")).toBe(false);
  expect(isFastAfter("@depute/bus")).toBe(true);
});
