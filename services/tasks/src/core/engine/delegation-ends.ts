import { DelegationStatus } from "@depute/contracts/delegateos/v0/delegation_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { ErrorReason, type Timers } from "@depute/core";
import { fromConnectError, type Logger, Outbox, ownHeaders, type WorkLease } from "@depute/service";
import type { Store } from "@depute/store";
import type { Dependencies } from "../dependencies.ts";
import { dropEnded, type EndedDelegation, firstEnded } from "../store/delegation-rows.ts";

/** Timeout of a call to the tokens service, in milliseconds. */
const TIMEOUT_MS = 10_000;

/**
 * Refusals that a retry cannot overcome. For example, the delegation does not exist in the tokens service, or has
 * already ended in another way.
 */
const FINAL: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.DELEGATION_NOT_FOUND,
  ErrorReason.DELEGATION_AMBIGUOUS,
  ErrorReason.DELEGATION_STATE_CONFLICT,
  ErrorReason.INVALID_REQUEST,
  ErrorReason.CALLER_NOT_ALLOWED,
  ErrorReason.UNKNOWN_METHOD,
]);

export interface DelegationEndsOptions {
  readonly store: Store;
  readonly delegations: Dependencies["delegations"];
  readonly timers: Timers;
  readonly log: Logger;
  readonly lease?: WorkLease | undefined;
}

/** Reports to the tokens service how the delegations of tasks ended. (DelegateOS 8) */
export function delegationEnds({
  store,
  delegations,
  timers,
  log,
  lease,
}: DelegationEndsOptions): Outbox<EndedDelegation> {
  return new Outbox<EndedDelegation>({
    timers,
    log,
    lease,
    failureMessage: "the end of a delegation cannot be reported to the tokens service",
    first: (limit) => store.read((tx) => firstEnded(tx, limit)),
    drop: ({ taskId }) => store.write((tx) => dropEnded(tx, taskId)),
    async tell({ taskId, delegationId, revocationId, status, attestationId }, signal) {
      const hasSucceeded = status === TaskStatus.COMPLETED;
      const value = {
        status: hasSucceeded ? DelegationStatus.COMPLETED : DelegationStatus.FAILED,
        attestationId,
      };
      const request = { delegationId, revocationId, outcome: { case: "result", value } } as const;
      const options = { headers: ownHeaders(""), signal, timeoutMs: TIMEOUT_MS };
      await delegations.finishDelegation(request, options).catch((thrown: unknown) => {
        const refusal = fromConnectError(thrown);
        if (!FINAL.has(refusal.reason)) throw refusal;
        log.debug(
          { err: refusal, task: taskId, delegation: delegationId },
          "the tokens service refused the end of a delegation",
        );
      });
    },
  });
}
