import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { type SerializedDCT, SerializedDCTSchema } from "@depute/contracts/delegateos/v0/token_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { SJT_FORMAT } from "@depute/dct";
import { callerOf, type Identity, mayActFor } from "@depute/service";
import type { By } from "./checker/checker.ts";
import { knownJudgement } from "./checker/known-judgement.ts";
import type { KnownContract } from "./contract-book.ts";
import { charged } from "./judge/charge.ts";
import type { WantedReview } from "./reviews.ts";
import { CheckNotRun, type CheckResult, shorten } from "./rules/check-result.ts";
import { judgeSteps } from "./rules/composite.ts";
import type { VerificationSpec } from "./rules/documents.ts";
import { isDeterministic } from "./rules/methods.ts";
import { type Review, stateOf } from "./rules/review.ts";
import { getJudgement, insertJudgement } from "./store/judgements.ts";
import { getRequestedReview } from "./store/reviews.ts";
import type { Verifier } from "./verifier.ts";

/** What came of judging an output. */
export interface Verdict {
  /** Undefined while a person has to decide. */
  result: CheckResult | undefined;
  /** The review that is waited for. */
  reviewId: string;
  /** What models cost for this output, in microcents, now or when it was judged before. */
  cost: number;
}

/** What is judged, for whom. */
export interface Subject {
  known: KnownContract;
  /** JSON of the output, as the caller's checks see it. */
  output: string;
  outputHash: string;
  identity: Identity;
  signal: AbortSignal;
  /** The issuer's token under which models are paid. */
  payingToken: SerializedDCT | undefined;
}

/** The token under which models are paid: the one that is named for it, else the one that the caller presents. */
export function payingTokenOf(
  named: SerializedDCT | undefined,
  context: HandlerContext,
): SerializedDCT | undefined {
  if (named !== undefined) return named;
  const { token } = callerOf(context);
  return token === undefined ? undefined : create(SerializedDCTSchema, { token, format: SJT_FORMAT });
}

/** The same, as the checker wants it. */
export function byOf({ identity, signal }: Pick<Subject, "identity" | "signal">): By {
  return { signal, caller: identity.local ? undefined : identity.principal };
}

/**
 * Judges an output by its contract, whatever the method. What is deterministic runs in the checker; models and people
 * are asked from here, each once for the same output.
 *
 * @throws DeputeError as WorkerPool.run; CALLER_NOT_ALLOWED, BUDGET_EXCEEDED, LIMIT_EXCEEDED
 */
export async function judgeOutput(verifier: Verifier, subject: Subject): Promise<Verdict> {
  const { contract, judgement } = subject.known;
  if (isDeterministic(contract.verification)) {
    const result = await verifier.checker.verify(judgement, subject.output, byOf(subject));
    return { result, reviewId: "", cost: 0 };
  }
  return judgeSpec(verifier, subject, contract.verification, "");
}

async function judgeSpec(
  verifier: Verifier,
  subject: Subject,
  spec: VerificationSpec,
  step: string,
): Promise<Verdict> {
  const { contract } = subject.known;
  if (isDeterministic(spec)) {
    const judgement = knownJudgement({ verification: spec, outputSchema: contract.task.outputSchema });
    const result = await verifier.checker.verify(judgement, subject.output, byOf(subject));
    return { result, reviewId: "", cost: 0 };
  }
  try {
    switch (spec.method) {
      case "llm_judge":
        return await byModel(verifier, subject, spec, step);
      case "human_review":
        return await byPerson(verifier, subject, spec, step);
      default:
        return await byComposite(verifier, subject, spec, step);
    }
  } catch (error) {
    if (!(error instanceof CheckNotRun)) throw error;
    return failing(error.message, 0);
  }
}

async function byComposite(
  verifier: Verifier,
  subject: Subject,
  spec: VerificationSpec,
  step: string,
): Promise<Verdict> {
  const results = new Map<VerificationSpec, CheckResult>();
  let cost = 0;
  let reviewId = "";
  for (const [i, part] of (spec.steps ?? []).entries()) {
    const verdict = await judgeSpec(verifier, subject, part, step === "" ? String(i) : `${step}.${i}`);
    cost += verdict.cost;
    if (verdict.result !== undefined) results.set(part, verdict.result);
    else reviewId ||= verdict.reviewId;
    // all_pass goes no further than its first step that has not passed, and so costs nobody more.
    if (spec.mode === "all_pass" && verdict.result?.passed !== true) break;
  }
  if (reviewId !== "") return { result: undefined, reviewId, cost };
  const run = (part: VerificationSpec) => {
    const result = results.get(part);
    if (result === undefined) throw new CheckNotRun("a step was not run");
    return result;
  };
  return { result: judgeSteps(spec, run), reviewId: "", cost };
}

async function byModel(
  verifier: Verifier,
  { known, output, outputHash, identity, signal, payingToken }: Subject,
  spec: VerificationSpec,
  step: string,
): Promise<Verdict> {
  const { store, judge, clock } = verifier;
  const { contract } = known;
  const key = { contractId: contract.id, outputHash, step };
  const before = await store.read((tx) => getJudgement(tx, key));
  if (before !== undefined) return { ...before, reviewId: "" };
  if (!mayActFor(identity, contract.issuer)) {
    throw new DeputeError(
      ErrorReason.CALLER_NOT_ALLOWED,
      "judging costs the contract's issuer, who has to ask for it",
    );
  }
  const judging = judge.prepare(contract, spec, output);
  const payer = { contract, token: payingToken };
  const { result, problem, cost } = await judge.once(`${contract.id} ${outputHash} ${step}`, () =>
    charged(verifier, payer, judging, signal, async (tx, judged) => {
      if (judged.result !== undefined)
        await insertJudgement(tx, key, judged.result, judged.cost, clock.now());
    }),
  );
  return result === undefined ? failing(problem, cost) : { result, reviewId: "", cost };
}

async function byPerson(
  verifier: Verifier,
  subject: Subject,
  spec: VerificationSpec,
  step: string,
): Promise<Verdict> {
  const { store, reviews, clock, reviewTimeoutMs, reviewers } = verifier;
  const { contract } = subject.known;
  const creator = verifier.keypair.principal.id;
  const requestId = `${contract.id} ${subject.outputHash} ${step}`;
  // Looked up first: a setting that changed since makes no other review of it.
  const known = await store.read((tx) => getRequestedReview(tx, creator, requestId));
  const wanted: WantedReview = {
    requestId,
    kind: "human_review",
    creator,
    subject: `${contract.id} ${subject.outputHash}`,
    title: contract.task.title,
    author: "",
    reviewers: [...new Set([contract.issuer, ...reviewers])],
    escalationReviewers: [],
    timeoutMs: spec.reviewTimeoutMs ?? reviewTimeoutMs,
    content: subject.output,
  };
  const review = known ?? (await reviews.create(wanted));
  return settled(verifier, subject, spec, step, review, clock.now());
}

async function settled(
  verifier: Verifier,
  subject: Subject,
  spec: VerificationSpec,
  step: string,
  review: Review,
  now: number,
): Promise<Verdict> {
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
      // A contract without a rubric has nothing that a model could judge by.
      if (spec.judgePrompt === undefined) return failing("nobody decided in time", 0);
      return byModel(verifier, subject, { ...spec, method: "llm_judge" }, step);
    default:
      return {
        result: { passed: false, score: 0, details: shorten(`${state}: ${review.reason ?? ""}`) },
        reviewId: "",
        cost: 0,
      };
  }
}

/** A judging that was not carried out has not passed. */
function failing(problem: string, cost: number): Verdict {
  const details = shorten(`could not be checked: ${problem}`);
  return { result: { passed: false, score: 0, details }, reviewId: "", cost };
}
