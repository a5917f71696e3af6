import { ProposalState } from "@depute/contracts/depute/registry/v1/proposal_service_pb";
import { type Review, ReviewKind } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { DeputeError, ErrorReason, fromTimestamp } from "@depute/core";
import {
  fromConnectError,
  isFinalRefusal,
  Outbox,
  optionsForOwner,
  ReviewQueue,
  type ReviewQueueDeps,
  reviewCallOptions,
  type SharedWork,
} from "@depute/service";
import type { WriteTx } from "@depute/store";
import type { RegistryContext } from "./context.ts";
import { makeGrant } from "./handlers/proposed-grant.ts";
import { reviewRequestOf } from "./proposal-request.ts";
import { outcomeOf } from "./rules/proposal.ts";
import {
  endProposal,
  findProposal,
  noteDeadline,
  owingProposals,
  type StoredProposal,
  settleCall,
} from "./store/proposals.ts";
import { REVIEW_CURSOR } from "./store/registry-state.ts";

/** Maximum length of a proposal's reason in characters. */
const MAX_REASON = 4000;

/** Thrown when the registry cannot make an approved grant, and a retry would get the same error. */
class GrantRefused extends Error {
  readonly refusal: DeputeError;

  constructor(refusal: DeputeError) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

/**
 * Connects proposals to the review queue of the verifier service. The transaction that creates or withdraws a
 * proposal also records the call to the verifier that must follow. The transaction that makes a grant also ends the
 * proposal and stores the position in the stream of reviews. So a crash neither loses a decision nor applies it
 * twice.
 */
export class ProposalReviews {
  readonly #registry: RegistryContext;
  readonly #outbox: Outbox<StoredProposal>;
  readonly #queue: ReviewQueue;

  constructor(deps: ReviewQueueDeps, registry: RegistryContext, work: SharedWork) {
    const { store } = registry;
    const { log, timers } = deps;
    this.#registry = registry;
    this.#outbox = new Outbox<StoredProposal>({
      timers,
      log,
      lease: work.lease("proposals"),
      failureMessage: "a proposal was not delivered to the verifier",
      first: (limit) => store.read((tx) => owingProposals(tx, limit)),
      drop: (row) => store.write((tx) => settleCall(tx, row)),
      tell: (row, signal) => this.#tell(row, signal),
    });
    this.#queue = new ReviewQueue(deps, {
      kind: ReviewKind.GRANT,
      streamName: "reviews of proposals",
      store,
      cursor: REVIEW_CURSOR,
      lease: work.lease("proposal-reviews"),
      apply: (review, advance) => this.#apply(review, advance),
    });
  }

  start(): void {
    this.#outbox.start();
    this.#queue.start();
  }

  /** Starts the delivery of the recorded calls to the verifier. */
  wake(): void {
    this.#outbox.wake();
  }

  async close(): Promise<void> {
    await Promise.all([this.#outbox.close(), this.#queue.close()]);
  }

  async #tell(proposal: StoredProposal, signal: AbortSignal): Promise<void> {
    const options = optionsForOwner(reviewCallOptions(signal), proposal);
    try {
      if (proposal.owed === "create") await this.#create(proposal, options);
      else
        await this.#queue.calls.withdrawReview({ reviewId: proposal.id, reason: proposal.reason }, options);
    } catch (thrown) {
      const refusal = fromConnectError(thrown);
      if (!isFinalRefusal(refusal)) throw refusal;
      if (proposal.owed === "create") await this.#fail(proposal.id, "", refusal);
    }
  }

  async #create(proposal: StoredProposal, options: ReturnType<typeof optionsForOwner>): Promise<void> {
    const { review } = await this.#queue.calls.createReview(reviewRequestOf(proposal), options);
    const deadline = review?.deadlineTime;
    if (deadline === undefined) return;
    await this.#registry.store.write((tx) => noteDeadline(tx, proposal.id, fromTimestamp(deadline)));
  }

  /** Applies a change of a review to its proposal, once. */
  async #apply(review: Review, advance: (tx: WriteTx) => Promise<void>): Promise<void> {
    try {
      await this.#registry.store.write(async (tx) => {
        await advance(tx);
        await this.#end(tx, review);
      });
    } catch (thrown) {
      if (!(thrown instanceof GrantRefused)) throw thrown;
      await this.#fail(review.id, review.decidedBy, thrown.refusal, advance);
    }
  }

  async #end(tx: WriteTx, { id, state: reviewState, decidedBy, reason }: Review): Promise<void> {
    const state = outcomeOf(reviewState);
    const proposal = await findProposal(tx, id);
    if (state === undefined || proposal?.state !== ProposalState.PENDING) return;
    // The review counts only after the verifier has confirmed it as the proposal's review. Otherwise another caller
    // could create a review with this id first, and decide it.
    if (proposal.owed === "create") throw notCreated();
    const { grant } = proposal.record;
    if (state === ProposalState.GRANTED && grant.case !== undefined) {
      const { baseDigest } = proposal;
      await makeGrant(this.#registry, tx, { grant, baseDigest }, decidedBy).catch((thrown: unknown) => {
        const isRefusal =
          thrown instanceof DeputeError && thrown.reason !== ErrorReason.DEPENDENCY_UNAVAILABLE;
        throw isRefusal ? new GrantRefused(thrown) : thrown;
      });
    }
    await endProposal(tx, id, { state, decidedBy, reason, endTime: this.#registry.clock.now(), owed: "" });
  }

  async #fail(
    id: string,
    decidedBy: string,
    refusal: DeputeError,
    advance: (tx: WriteTx) => Promise<void> = async () => {},
  ): Promise<void> {
    const { store, clock } = this.#registry;
    await store.write(async (tx) => {
      await advance(tx);
      const proposal = await findProposal(tx, id);
      if (proposal?.state !== ProposalState.PENDING) return;
      const reason = refusal.message.slice(0, MAX_REASON);
      await endProposal(tx, id, {
        ...{ state: ProposalState.FAILED, decidedBy, reason, endTime: clock.now(), owed: "" },
      });
    });
  }
}

/**
 * Returns the error after which the registry reads the stream of reviews again. Meanwhile the outbox creates the
 * review of the proposal.
 */
function notCreated(): DeputeError {
  return new DeputeError(ErrorReason.DEPENDENCY_UNAVAILABLE, "the review of a proposal is not created yet", {
    metadata: { service: "verifier" },
  });
}
