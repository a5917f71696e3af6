import { ProposalState } from "@depute/contracts/depute/registry/v1/proposal_service_pb";
import { ReviewState } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";

/** The kinds of grants that a principal may propose. */
export const PROPOSAL_KINDS = ["organization", "authority", "manifest"] as const;
export type ProposalKind = (typeof PROPOSAL_KINDS)[number];

/**
 * Maximum number of pending proposals: of one principal (MAX_PENDING), and of all principals together
 * (MAX_PENDING_OF_ALL).
 */
export const MAX_PENDING = 16;
export const MAX_PENDING_OF_ALL = 10_000;
/** Maximum number of proposals that one principal creates within {@link DAY_MS}. */
export const MAX_PER_DAY = 64;
export const DAY_MS = 86_400_000;
/** Maximum number of permissions that a proposed manifest adds, because a reviewer has to read each of them. */
export const MAX_WIDENINGS = 256;
const MAX_REVIEWERS = 64;

/** The caller without credentials on an open loopback. */
const LOCAL = "local";

/**
 * The principals that may make a grant directly, by the kind of the grant. Callers with the role operator may do so
 * too.
 */
export type Grantors = Readonly<Record<ProposalKind, readonly string[]>>;

/**
 * Returns the principals that may decide a proposal: those that may make the grant directly, without the proposer. On
 * an open loopback, `local` may be proposer and reviewer, because every program of the machine is `local`.
 */
export function reviewersOf(kind: ProposalKind, grantors: Grantors, proposer: string): string[] {
  const others = grantors[kind].filter((one) => one !== proposer || one === LOCAL);
  return [...new Set(others)].slice(0, MAX_REVIEWERS);
}

/** Returns the author of a proposal's review; empty for `local`. The author of a review may not decide it. */
export function authorOf(proposer: string): string {
  return proposer === LOCAL ? "" : proposer;
}

/** The numbers of existing proposals. */
export interface ProposalCounts {
  /** Number of pending proposals of the proposer. */
  readonly pending: number;
  /** Number of proposals that the proposer created in the last {@link DAY_MS}. */
  readonly today: number;
  /** Number of pending proposals of all principals. */
  readonly pendingOfAll: number;
}

/**
 * Requires that the proposer may create one more proposal.
 *
 * @throws DeputeError LIMIT_EXCEEDED
 */
export function checkRoom({ pending, today, pendingOfAll }: ProposalCounts): void {
  if (pending >= MAX_PENDING) {
    throw tooMany("proposals", MAX_PENDING, "proposals of the caller are pending; withdraw one first");
  }
  if (today >= MAX_PER_DAY) {
    throw tooMany(
      "proposals_per_day",
      MAX_PER_DAY,
      "proposals of the caller were created within a day; try again later",
    );
  }
  if (pendingOfAll >= MAX_PENDING_OF_ALL) {
    throw tooMany("pending_proposals", MAX_PENDING_OF_ALL, "proposals are pending; try again later");
  }
}

/**
 * Requires that a proposal adds at most {@link MAX_WIDENINGS} permissions.
 *
 * @throws DeputeError LIMIT_EXCEEDED
 */
export function checkWidenings(count: number): void {
  if (count > MAX_WIDENINGS) {
    throw tooMany(
      "proposal_widenings",
      MAX_WIDENINGS,
      "permissions are the maximum of one proposal; propose fewer at once",
    );
  }
}

function tooMany(limit: string, max: number, message: string): DeputeError {
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, `${max} ${message}`, {
    metadata: { limit, max: String(max) },
  });
}

/**
 * Returns the state of a proposal whose review has the state `review`; undefined while the review waits. When the
 * state is GRANTED, the registry makes the grant.
 */
export function outcomeOf(review: ReviewState): ProposalState | undefined {
  switch (review) {
    case ReviewState.APPROVED:
      return ProposalState.GRANTED;
    case ReviewState.REJECTED:
    case ReviewState.CHANGES_REQUESTED:
      return ProposalState.REJECTED;
    case ReviewState.TIMED_OUT:
      return ProposalState.EXPIRED;
    case ReviewState.WITHDRAWN:
      return ProposalState.WITHDRAWN;
    default:
      return undefined;
  }
}

/** The members of a proposal that decide whether it can be withdrawn. */
export interface Withdrawable {
  readonly id: string;
  readonly proposer: string;
  readonly state: ProposalState;
}

/**
 * Whether a withdrawal changes the proposal; false if the proposal is already withdrawn.
 *
 * @param mayAct whether the caller may act for the proposer
 * @throws DeputeError CALLER_NOT_ALLOWED, PROPOSAL_CLOSED
 */
export function checkWithdrawal({ id, state }: Withdrawable, mayAct: boolean): boolean {
  if (!mayAct) {
    throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only the proposer may withdraw a proposal", {
      violations: [{ field: "proposal_id", description: "belongs to another principal" }],
    });
  }
  if (state === ProposalState.WITHDRAWN) return false;
  if (state === ProposalState.PENDING) return true;
  const [name = "unspecified"] = Object.entries(ProposalState).find(([, value]) => value === state) ?? [];
  throw new DeputeError(ErrorReason.PROPOSAL_CLOSED, `the proposal is closed: ${name.toLowerCase()}`, {
    metadata: { proposal: id, state: name.toLowerCase() },
  });
}
