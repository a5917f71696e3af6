import type { CheckResult } from "./check-result.ts";

/** The steps of DelegateOS 7.3, in their order. */
export const STEPS = ["signature", "output", "verification", "cost"] as const;
export type Step = (typeof STEPS)[number];

export interface Finding {
  step: Step;
  passed: boolean;
  /** What is wrong, for a person; empty when nothing is. */
  details: string;
}

/** What was found out about an attestation. */
export interface Evidence {
  /** What is wrong with its signature. */
  signatureFault: string | undefined;
  /** Why there is no output that is the one it speaks of. */
  outputFault: string | undefined;
  /** The output under the contract's output schema; undefined where the method is not schema_match. */
  schema: CheckResult | undefined;
  /** The output under the contract's verification; undefined where there was no output to judge. */
  verification: CheckResult | undefined;
  costMicrocents: number;
  maxBudgetMicrocents: number;
}

/** Every step's finding: a step that fails does not hide the others. */
export function findingsOf(evidence: Evidence): Finding[] {
  const { costMicrocents: cost, maxBudgetMicrocents: budget } = evidence;
  return [
    finding("signature", evidence.signatureFault),
    finding("output", evidence.outputFault ?? faultOf(evidence.schema)),
    finding(
      "verification",
      evidence.verification === undefined ? "there is no output to judge" : faultOf(evidence.verification),
    ),
    finding("cost", cost <= budget ? undefined : `${cost} microcents are more than the budget of ${budget}`),
  ];
}

/** The steps that a statement of failure has to pass: it has no output that could fit the contract. */
const STEPS_OF_FAILURE: readonly Step[] = ["signature", "cost"];

/** What keeps an attestation from ending its delegation, for a person; empty when nothing does. */
export function faultsOfCompletion(findings: readonly Finding[], hasSucceeded: boolean): string {
  return findings
    .filter(({ step, passed }) => !passed && (hasSucceeded || STEPS_OF_FAILURE.includes(step)))
    .map(({ step, details }) => `${step}: ${details}`)
    .join("; ");
}

function faultOf(result: CheckResult | undefined): string | undefined {
  if (result === undefined || result.passed) return undefined;
  return result.details ?? "it did not pass";
}

function finding(step: Step, fault: string | undefined): Finding {
  return { step, passed: fault === undefined, details: fault ?? "" };
}

/** An output as it is compared. */
interface Output {
  /** Canonical JSON. */
  canonical: string;
  /** base64url of BLAKE2b-256 of it. */
  hash: string;
}

/** What an attestation says about its output, and the output that was given along. */
export interface OutputClaim {
  held: Output | undefined;
  hash: string | undefined;
  given: Output | undefined;
}

/** Why there is no output, or not the one that the attestation speaks of; undefined when there is. */
export function outputFault({ held, hash, given }: OutputClaim): string | undefined {
  if (held === undefined && hash === undefined) return "the attestation holds neither an output nor its hash";
  const output = held ?? given;
  if (output === undefined) return "the attestation holds a hash only: the output is needed";
  if (given !== undefined && given.canonical !== output.canonical) {
    return "the output given is not the one that the attestation holds";
  }
  return hash === undefined || output.hash === hash
    ? undefined
    : "the output does not have the hash attested";
}
