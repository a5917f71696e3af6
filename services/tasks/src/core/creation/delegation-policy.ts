import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";
import {
  type CheckDelegationResponse,
  type DelegatedWorkSchema,
  PolicyDecisionSchema,
} from "@depute/contracts/depute/registry/v1/policy_service_pb";
import type { TaskDraft } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { LOCAL_PRINCIPAL } from "@depute/service";
import type { Dependencies } from "../dependencies.ts";

/** The registry's agents have keys of this many characters. */
const KEY_CHARS = 43;

/** Characters of a description that count as the reason why. */
const MAX_JUSTIFICATION = 4000;

/** What the registry is told of work, for predicates. */
export type DelegatedWork = MessageInitShape<typeof DelegatedWorkSchema>;

/** What a draft does not say of the work: how deep below other tasks it will stand, and which types of attachments it has. */
export type MoreOfWork = Pick<DelegatedWork, "depth" | "attachmentTypes">;

/** What predicates of manifests may ask of a draft. A part's depth is known to who knows its parent. */
export function workOf(
  { priority, spend, parentTaskId }: TaskDraft,
  capabilityId: string,
  more: MoreOfWork = {},
): DelegatedWork {
  const work: DelegatedWork = { capabilityId, priority, attachmentTypes: more.attachmentTypes ?? [] };
  const depth = more.depth ?? (parentTaskId === "" ? 0 : undefined);
  if (depth !== undefined) work.depth = depth;
  if (spend?.maxCostMicrocents !== undefined) work.maxCostMicrocents = spend.maxCostMicrocents;
  if (spend?.maxTokens !== undefined) work.maxTokens = spend.maxTokens;
  return work;
}

/**
 * Holds a delegator to the manifest of its agent: work goes only to whom it allows. (CAP "Delegation")
 *
 * Depute's choice: the description of the work is the reason that the rule asks for. A key that no manifest binds is
 * not restricted, because nothing says to whom; the registry says what binds a key.
 *
 * @param delegator its principal
 * @param to the delegate's id
 * @param task what predicates may ask of the work; without it they know nothing of it
 * @throws DeputeError CALLER_NOT_ALLOWED, with `agent`, `delegate`, `decision` and, where a predicate could not be decided, `predicate_failure`; DEPENDENCY_UNAVAILABLE
 */
export async function requireAllowed(
  dependencies: Dependencies,
  delegator: string,
  to: string,
  description: string,
  options: CallOptions,
  task?: DelegatedWork,
): Promise<void> {
  if (delegator === LOCAL_PRINCIPAL || delegator.length > KEY_CHARS) return;
  const justification = Array.from(description).slice(0, MAX_JUSTIFICATION).join("");
  const question = { fromPrincipal: delegator, toAgentId: to, justification, ...(task && { task }) };
  const answer = await dependencies.policy.checkDelegation(question, options);
  if (!answer.allowed) throw notAllowed(to, answer);
}

function notAllowed(
  to: string,
  { agentId: from, decision, predicateFailure }: CheckDelegationResponse,
): DeputeError {
  const name = PolicyDecisionSchema.value[decision]?.name ?? "";
  const word = name.replace("POLICY_DECISION_", "").toLowerCase();
  return new DeputeError(
    ErrorReason.CALLER_NOT_ALLOWED,
    "the delegator's manifest does not allow this delegation",
    {
      metadata: {
        agent: from,
        delegate: to,
        decision: word,
        ...(predicateFailure !== "" && { predicate_failure: predicateFailure }),
      },
    },
  );
}
