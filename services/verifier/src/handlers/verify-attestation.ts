import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  AttestationStep,
  type VerifyAttestationRequest,
  type VerifyAttestationResponse,
  VerifyAttestationResponseSchema,
} from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { invalid } from "@depute/core";
import { verifyObject } from "@depute/dct";
import type { Identity } from "@depute/service";
import { canonicalOutput, readAttestation } from "../attestations.ts";
import type { By } from "../checker/checker.ts";
import { schemaJudgementOf } from "../contract-book.ts";
import { toDocument, toMessage } from "../documents.ts";
import { assertOutputSize, readText } from "../json-value.ts";
import { byOf, judgeOutput, payingTokenOf } from "../judging.ts";
import { type Finding, findingsOf, outputFault, type Step } from "../rules/attestation-findings.ts";
import type { CheckResult } from "../rules/check-result.ts";
import type { Attestation } from "../rules/documents.ts";
import type { Verifier } from "../verifier.ts";

const STEPS: Record<Step, AttestationStep> = {
  signature: AttestationStep.SIGNATURE,
  output: AttestationStep.OUTPUT,
  verification: AttestationStep.VERIFICATION,
  cost: AttestationStep.COST,
};

/** Verifies one level of an attestation (DelegateOS 7.3). Every step is carried out and told, also after one failed. */
export async function verifyAttestation(
  verifier: Verifier,
  request: VerifyAttestationRequest,
  context: HandlerContext,
): Promise<VerifyAttestationResponse> {
  const identity = await verifier.authority.identify(context);
  const attestation = await subjectOf(verifier, request);
  const given = readText(request.output, request.outputJson, "output");
  const { findings } = await examine(verifier, attestation, given, identity, context);
  return create(VerifyAttestationResponseSchema, {
    valid: findings.every(({ passed }) => passed),
    findings: findings.map(({ step, passed, details }) => ({ step: STEPS[step], passed, details })),
    attestation: toMessage("attestation", attestation),
  });
}

/** What the steps of DelegateOS 7.3 say of an attestation. */
export interface Examined {
  findings: Finding[];
  /** The output under the contract's verification; undefined where no output was judged. */
  verification: CheckResult | undefined;
  /** The review that a person has to decide first; empty for none. */
  reviewId: string;
}

/**
 * Carries out every step of DelegateOS 7.3.
 *
 * @param given JSON of the output, where the attestation holds only a hash of it
 * @throws DeputeError CONTRACT_NOT_FOUND, INVALID_REQUEST, and as judgeOutput
 */
export async function examine(
  verifier: Verifier,
  attestation: Attestation,
  given: string | undefined,
  identity: Identity,
  context: HandlerContext,
): Promise<Examined> {
  const { engine, checker } = verifier;
  const known = await verifier.contracts.get(attestation.contractId);
  const { contract } = known;
  const verified = verifyObject(engine, "attestation", attestation);
  const by = { identity, signal: context.signal };
  const found = await outputOf(verifier, attestation, given, byOf(by));
  const { canonical: text, hash } = found;
  // The text checks the output schema for schema_match only.
  const schema = contract.verification.method === "schema_match" ? schemaJudgementOf(contract) : undefined;
  const payingToken = payingTokenOf(undefined, context);
  const fits =
    schema === undefined || text === undefined ? undefined : await checker.verify(schema, text, byOf(by));
  const verdict =
    text === undefined
      ? undefined
      : await judgeOutput(verifier, { known, output: text, outputHash: hash, payingToken, ...by });
  const reviewId = verdict?.reviewId ?? "";
  const waiting = { passed: false, details: `review ${reviewId} waits for a decision` };
  const verification = verdict && (verdict.result ?? waiting);
  const findings = findingsOf({
    signatureFault: verified.ok ? undefined : verified.refusal.detail,
    outputFault: found.fault,
    schema: fits,
    verification,
    costMicrocents: attestation.result.costMicrocents,
    maxBudgetMicrocents: contract.constraints.maxBudgetMicrocents,
  });
  return { findings, verification, reviewId: verdict?.result === undefined ? reviewId : "" };
}

async function subjectOf({ store }: Verifier, { subject }: VerifyAttestationRequest): Promise<Attestation> {
  if (subject.case === "id") return (await readAttestation(store, subject.value)).attestation;
  if (subject.case === "attestation") return toDocument("attestation", subject.value);
  throw invalid("subject", "an id or an attestation is needed");
}

/** An output, or why it is not the one that the attestation speaks of. */
type FoundOutput =
  | { canonical: string; hash: string; fault: undefined }
  | { canonical: undefined; hash: string; fault: string };

async function outputOf(
  verifier: Verifier,
  { result }: Attestation,
  given: string | undefined,
  by: By,
): Promise<FoundOutput> {
  const field = "attestation.result.output";
  const text = result.output === undefined ? undefined : JSON.stringify(result.output);
  if (text !== undefined) assertOutputSize(text, field);
  const held = text === undefined ? undefined : await canonicalOutput(verifier, text, by, field);
  const along = given === undefined ? undefined : await canonicalOutput(verifier, given, by);
  const fault = outputFault({ held, hash: result.outputHash, given: along });
  const output = held ?? along;
  return fault === undefined && output !== undefined
    ? { ...output, fault: undefined }
    : { canonical: undefined, hash: "", fault: fault ?? "there is no output" };
}
