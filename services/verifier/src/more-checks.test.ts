import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { loadChecks } from "./checker/more-checks.ts";
import { check, signedContract } from "./testing/contracts.ts";
import { message, type Platform, refusal, startPlatform, value } from "./testing/platform.ts";

const folder = mkdtempSync(join(tmpdir(), "depute-checks-"));
const file = (name: string, text: string) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
let platform: Platform;
beforeAll(async () => {
  const checks = file(
    "checks.ts",
    `export default (registry: { register(name: string, fn: Function, params?: Function): void }) => {
      registry.register(
        "word_count",
        (output: string, params: { min: number }) => {
          const words = output.split(" ").length;
          return { passed: words >= params.min, score: 1, details: words + " words" };
        },
        (params: { min?: unknown } | undefined) =>
          typeof params?.min === "number" ? undefined : { member: "min", problem: "a number is needed" },
      );
      registry.register("throws", () => { throw new Error("no idea"); });
      registry.register("nothing", () => "passed");
      registry.register("endless", () => { for (;;); });
    };`,
  );
  platform = await startPlatform(["--verifier-checks", checks, "--verifier-check-timeout", "500ms"]);
});
afterAll(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true });
});

const judge = async (name: string, params: unknown, output: string) => {
  const contract = await platform.agree({ verification: check(name, params), outputSchema: true });
  return platform.verification.checkOutput({ contractId: contract.id, output: value(output) });
};

test("a check of a module verifies outputs, and its parameters are validated first", async () => {
  expect((await judge("word_count", { min: 2 }, "two words")).result).toMatchObject({ passed: true });
  expect((await judge("word_count", { min: 3 }, "two words")).result).toMatchObject({
    passed: false,
    details: "2 words",
  });
  const contract = message(signedContract({ verification: check("word_count", { min: "2" }) }));
  expect(await refusal(platform.contracts.createContract({ contract }))).toMatchObject({
    reason: "INVALID_REQUEST",
    fields: ["contract.verification.check_params.min"],
  });
  expect((await judge("string_length", { min: 2 }, "two words")).result?.passed).toBe(true);
});

test.each([
  ["throws", "no idea"],
  ["nothing", "the check returned no result"],
])("an output has not passed if its check %s", async (name, details) => {
  const { result } = await judge(name, {}, "x");
  expect(result).toMatchObject({ passed: false, score: 0 });
  expect(result?.details).toContain(details);
});

test("stops a check at its time limit", async () => {
  expect(await refusal(judge("endless", {}, "x"))).toMatchObject({ reason: "CHECK_TIMEOUT" });
});

test.each([
  ["is missing", join(folder, "none.ts"), "none.ts"],
  ["exports nothing", file("empty.ts", "export const a = 1;"), "no default export"],
  [
    "registers a name twice",
    file("twice.ts", 'export default (r) => { r.register("a", () => 1); r.register("a", () => 1); };'),
    'the check "a"',
  ],
])("a module that %s stops the start", async (_, path, problem) => {
  await expect(loadChecks(path)).rejects.toThrow(problem);
});
