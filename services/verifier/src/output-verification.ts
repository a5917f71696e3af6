import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { type SerializedDCT, SerializedDCTSchema } from "@depute/contracts/delegateos/v0/token_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { SJT_FORMAT } from "@depute/dct";
import { callerOf, type Identity, mayActFor } from "@depute/service";
import type { CheckCaller } from "./checker/checker.ts";
import { prepareRule } from "./checker/prepared-rule.ts";
import type { KnownContract } from "./contract-book.ts";
import { runAndCharge } from "./judge/charge.ts";
import type { NewReview } from "./reviews.ts";
import { CheckNotRun, type CheckResult, shorten } from "./rules/check-result.ts";
import { compositeResult } from "./rules/composite.ts";
import type { VerificationSpec } from "./rules/documents.ts";
import { isDeterministic } from "./rules/methods.ts";
import { type Review, stateOf } from "./rules/review.ts";
import { findJudgeResult, insertJudgeResult } from "./store/judge-results.ts";
import { getRequestedReview } from "./store/reviews.ts";
import type { Verifier } from "./verifier.ts";

/** The verdict on an output. */
export interface OutputVerdict {
  /** The result of the verification; undefined while a review is pending. */
  result: CheckResult | undefined;
  /** The id of the pending review; empty if no review is pending. */
  reviewId: string;
  /** Total cost of the models for this output in microcents, including the cost of earlier runs. */
  cost: number;
}

/** An output to verify, the contract that it must satisfy, and the caller. */
export interface OutputToVerify {
  knownContract: KnownContract;
  /** JSON of the output, which the checks read. */
  output: string;
  outputHash: string;
  identity: Identity;
  signal: AbortSignal;
  /** The token of the contract's issuer that pays for models; undefined if the caller sent none. */
  payingToken: SerializedDCT | undefined;
}

/** Returns the token that pays for models: the paying token of the request or, without one, the caller's token. */
export function payingTokenOf(
  requestToken: SerializedDCT | undefined,
  context: HandlerContext,
): SerializedDCT | undefined {
  if (requestToken !== undefined) return requestToken;
  const { token } = callerOf(context);
  return token === undefined ? undefined : create(SerializedDCTSchema, { token, format: SJT_FORMAT });
}

/** Returns the caller in the form that the checker needs. For a local caller, `caller` is undefined. */
export function checkCallerOf({
  identity,
  signal,
}: Pick<OutputToVerify, "identity" | "signal">): CheckCaller {
  return { signal, caller: identity.local ? undefined : identity.principal };
}

/**
 * Verifies an output by its contract's method. The checker runs deterministic methods. For equal outputs of one
 * contract, each model and each reviewer decides only once.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED if a model must decide and the caller may not act for the contract's issuer;
 * the errors of Checker.verify, runAndCharge and the creation of a review
 */
export async function verifyByContract(verifier: Verifier, subject: OutputToVerify): Promise<OutputVerdict> {
  const verdict = await verifyUncounted(verifier, subject);
  if (verdict.result !== undefined) verifier.countCheck(verdict.result);
  return verdict;
}

async function verifyUncounted(verifier: Verifier, subject: OutputToVerify): Promise<OutputVerdict> {
  const { contract, outputRule } = subject.knownContract;
  if (isDeterministic(contract.verification)) {
    const result = await verifier.checker.verify(outputRule, subject.output, checkCallerOf(subject));
    return { result, reviewId: "", cost: 0 };
  }
  return verifyBySpec(verifier, subject, contract.verification, "");
}

async function verifyBySpec(
  verifier: Verifier,
  subject: OutputToVerify,
  spec: VerificationSpec,
  step: string,
): Promise<OutputVerdict> {
  const { contract } = subject.knownContract;
  if (isDeterministic(spec)) {
    const outputRule = prepareRule({ verification: spec, outputSchema: contract.task.outputSchema });
    const result = await verifier.checker.verify(outputRule, subject.output, checkCallerOf(subject));
    return { result, reviewId: "", cost: 0 };
  }
  try {
    switch (spec.method) {
      case "llm_judge":
        return await verifyByModel(verifier, subject, spec, step);
      case "human_review":
        return await verifyByReview(verifier, subject, spec, step);
      default:
        return await verifyByComposite(verifier, subject, spec, step);
    }
  } catch (error) {
    if (!(error instanceof CheckNotRun)) throw error;
    return failedVerdict(error.message, 0);
  }
}

async function verifyByComposite(
  verifier: Verifier,
  subject: OutputToVerify,
  spec: VerificationSpec,
  step: string,
): Promise<OutputVerdict> {
  const results = new Map<VerificationSpec, CheckResult>();
  let cost = 0;
  let reviewId = "";
  for (const [i, part] of (spec.steps ?? []).entries()) {
    const verdict = await verifyBySpec(verifier, subject, part, step === "" ? String(i) : `${step}.${i}`);
    cost += verdict.cost;
    if (verdict.result !== undefined) results.set(part, verdict.result);
    else reviewId ||= verdict.reviewId;
    // In the mode all_pass, the loop stops at the first step that has not passed, so that later steps cost nothing.
    if (spec.mode === "all_pass" && verdict.result?.passed !== true) break;
  }
  if (reviewId !== "") return { result: undefined, reviewId, cost };
  const run = (part: VerificationSpec) => {
    const result = results.get(part);
    if (result === undefined) throw new CheckNotRun("a step did not run");
    return result;
  };
  return { result: compositeResult(spec, run), reviewId: "", cost };
}

async function verifyByModel(
  verifier: Verifier,
  { knownContract, output, outputHash, identity, signal, payingToken }: OutputToVerify,
  spec: VerificationSpec,
  step: string,
): Promise<OutputVerdict> {
  const { store, judge, judgeClaims, clock } = verifier;
  const { contract } = knownContract;
  const key = { contractId: contract.id, outputHash, step };
  const before = await store.read((tx) => findJudgeResult(tx, key));
  if (before !== undefined) return { ...before, reviewId: "" };
  if (!mayActFor(identity, contract.issuer)) {
    throw new DeputeError(
      ErrorReason.CALLER_NOT_ALLOWED,
      "a model's verification charges the contract's issuer; call as the issuer",
    );
  }
  const judgeRun = judge.prepare(contract, spec, output);
  const payer = { contract, token: payingToken };
  const run = () =>
    runAndCharge(verifier, payer, judgeRun, signal, async (tx, outcome) => {
      if (outcome.result !== undefined)
        await insertJudgeResult(tx, key, outcome.result, outcome.cost, clock.now());
    });
  const { result, problem, cost } = await judge.once(`${contract.id} ${outputHash} ${step}`, () =>
    judgeClaims === undefined ? run() : judgeClaims.once(key, signal, run),
  );
  return result === undefined ? failedVerdict(problem, cost) : { result, reviewId: "", cost };
}

async function verifyByReview(
  verifier: Verifier,
  subject: OutputToVerify,
  spec: VerificationSpec,
  step: string,
): Promise<OutputVerdict> {
  const { store, reviews, clock, reviewTimeoutMs, reviewers } = verifier;
  const { contract } = subject.knownContract;
  const creator = verifier.keypair.principal.id;
  const requestId = `${contract.id} ${subject.outputHash} ${step}`;
  // Searches for an existing review first. Otherwise, after a change of the settings, `create` would refuse the request
  // id.
  const existing = await store.read((tx) => getRequestedReview(tx, creator, requestId));
  const newReview: NewReview = {
    requestId,
    kind: "human_review",
    creator,
    organization: subject.knownContract.organization,
    subject: `${contract.id} ${subject.outputHash}`,
    title: contract.task.title,
    author: "",
    reviewers: [...new Set([contract.issuer, ...reviewers])],
    escalationReviewers: [],
    timeoutMs: spec.reviewTimeoutMs ?? reviewTimeoutMs,
    content: subject.output,
  };
  const review = existing ?? (await reviews.create(newReview));
  return verdictOfReview(verifier, subject, spec, step, review, clock.now());
}

async function verdictOfReview(
  verifier: Verifier,
  subject: OutputToVerify,
  spec: VerificationSpec,
  step: string,
  review: Review,
  now: number,
): Promise<OutputVerdict> {
  const state = stateOf(review, now);
  switch (state) {
    case "pending":
      return { result: undefined, reviewId: review.id, cost: 0 };
    case "approved":
      return {
        result: { passed: true, score: 1, details: shorten(`approved by ${review.decidedBy ?? ""}`) },
        reviewId: "",
        cost: 0,
      };
    case "timed_out":
      // If the contract has no prompt for a judge, no model can decide instead of the reviewer.
      if (spec.judgePrompt === undefined) return failedVerdict("the review timed out", 0);
      return verifyByModel(verifier, subject, { ...spec, method: "llm_judge" }, step);
    default:
      return {
        result: { passed: false, score: 0, details: shorten(`${state}: ${review.reason ?? ""}`) },
        reviewId: "",
        cost: 0,
      };
  }
}

/** Returns the verdict for a verification that could not run: the output has not passed. */
function failedVerdict(problem: string, cost: number): OutputVerdict {
  const details = shorten(`the check could not run: ${problem}`);
  return { result: { passed: false, score: 0, details }, reviewId: "", cost };
}
