import { expect, test } from "vitest";
import {
  type Evidence,
  findingsOf,
  type OutputClaim,
  outputFault,
  STEPS,
  type Step,
} from "./attestation-findings.ts";

const sound: Evidence = {
  signatureFault: undefined,
  outputFault: undefined,
  schema: { passed: true },
  verification: { passed: true },
  costMicrocents: 10,
  maxBudgetMicrocents: 10,
};

test.each<[what: string, change: Partial<Evidence>, failed: Step[]]>([
  ["all is well", {}, []],
  ["the method is not schema_match", { schema: undefined }, []],
  ["a forged signature", { signatureFault: "not signed by principal" }, ["signature"]],
  [
    "no output",
    { outputFault: "none", schema: undefined, verification: undefined },
    ["output", "verification"],
  ],
  ["an output outside the schema", { schema: { passed: false, details: "data must be object" } }, ["output"]],
  ["an output that does not pass", { verification: { passed: false } }, ["verification"]],
  ["a cost over the budget", { costMicrocents: 11 }, ["cost"]],
])("%s", (_, change, failed) => {
  const findings = findingsOf({ ...sound, ...change });
  expect(findings.map(({ step }) => step)).toEqual([...STEPS]);
  expect(findings.filter(({ passed }) => !passed).map(({ step }) => step)).toEqual(failed);
  for (const { passed, details } of findings) expect(details === "").toBe(passed);
});

const one = { canonical: "1", hash: "h1" };
const two = { canonical: "2", hash: "h2" };
test.each<[claim: Partial<OutputClaim>, fault: RegExp | undefined]>([
  [{ heldOutput: one }, undefined],
  [{ heldOutput: one, hash: "h1" }, undefined],
  [{ heldOutput: one, sent: one }, undefined],
  [{ hash: "h1", sent: one }, undefined],
  [{}, /neither/],
  [{ sent: one }, /neither/],
  [{ hash: "h1" }, /send the output/],
  [{ heldOutput: one, sent: two }, /differs/],
  [{ heldOutput: one, hash: "h2" }, /attested hash/],
  [{ hash: "h1", sent: two }, /attested hash/],
])("%j", (claim, fault) => {
  const foundFault = outputFault({ heldOutput: undefined, hash: undefined, sent: undefined, ...claim });
  if (fault === undefined) expect(foundFault).toBeUndefined();
  else expect(foundFault).toMatch(fault);
});
