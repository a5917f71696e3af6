import type { CheckResult } from "./check-result.ts";

/** The steps of DelegateOS 7.3, in the order of that section. */
export const STEPS = ["signature", "output", "verification", "cost"] as const;
export type Step = (typeof STEPS)[number];

export interface Finding {
  step: Step;
  passed: boolean;
  /** The explanation of the fault; empty if the step passed. */
  details: string;
}

/** The facts about an attestation that determine the findings. */
export interface Evidence {
  /** The fault of the signature; undefined if the signature is valid. */
  signatureFault: string | undefined;
  /** The reason why there is no output that matches the attestation; undefined if there is one. */
  outputFault: string | undefined;
  /**
   * Result of checking the output against the contract's output schema. Undefined if the method is not schema_match, or
   * without an output.
   */
  schema: CheckResult | undefined;
  /** Result of checking the output against the contract's verification. Undefined without an output. */
  verification: CheckResult | undefined;
  costMicrocents: number;
  maxBudgetMicrocents: number;
}

/** Returns the finding of each step, including the steps after a failed step. */
export function findingsOf(evidence: Evidence): Finding[] {
  const { costMicrocents: cost, maxBudgetMicrocents: budget } = evidence;
  return [
    finding("signature", evidence.signatureFault),
    finding("output", evidence.outputFault ?? faultOf(evidence.schema)),
    finding(
      "verification",
      evidence.verification === undefined ? "there is no output to verify" : faultOf(evidence.verification),
    ),
    finding("cost", cost <= budget ? undefined : `${cost} microcents exceed the budget of ${budget}`),
  ];
}

/**
 * The steps that an attestation of a failure must pass. All other steps need an output, and an attestation of a failure
 * has no output.
 */
const STEPS_OF_FAILURE: readonly Step[] = ["signature", "cost"];

/**
 * Returns the reasons, as text, why an attestation cannot end its delegation; empty if the attestation can end the
 * delegation.
 */
export function faultsOfCompletion(findings: readonly Finding[], hasSucceeded: boolean): string {
  return findings
    .filter(({ step, passed }) => !passed && (hasSucceeded || STEPS_OF_FAILURE.includes(step)))
    .map(({ step, details }) => `${step}: ${details}`)
    .join("; ");
}

function faultOf(result: CheckResult | undefined): string | undefined {
  if (result === undefined || result.passed) return undefined;
  return result.details ?? "the output did not pass";
}

function finding(step: Step, fault: string | undefined): Finding {
  return { step, passed: fault === undefined, details: fault ?? "" };
}

/** An output in the form that the rules compare. */
interface Output {
  /** Canonical JSON. */
  canonical: string;
  /** base64url of BLAKE2b-256 of the canonical JSON. */
  hash: string;
}

/**
 * The output in the attestation (`heldOutput`), the hash in the attestation, and the output in the request (`sent`).
 */
export interface OutputClaim {
  heldOutput: Output | undefined;
  hash: string | undefined;
  sent: Output | undefined;
}

/** Returns the reason why there is no output that matches the attestation; undefined if there is one. */
export function outputFault({ heldOutput, hash, sent: sentOutput }: OutputClaim): string | undefined {
  if (heldOutput === undefined && hash === undefined)
    return "the attestation holds neither an output nor its hash";
  const output = heldOutput ?? sentOutput;
  if (output === undefined) return "the attestation has only a hash; send the output";
  if (sentOutput !== undefined && sentOutput.canonical !== output.canonical) {
    return "the sent output differs from the attestation's output";
  }
  return hash === undefined || output.hash === hash
    ? undefined
    : "the output does not match the attested hash";
}
