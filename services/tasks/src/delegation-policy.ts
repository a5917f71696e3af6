import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";
import {
  type CheckDelegationResponse,
  type DelegatedWorkSchema,
  PolicyDecision,
  PolicyDecisionSchema,
} from "@depute/contracts/depute/registry/v1/policy_service_pb";
import type { TaskDraft } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { LOCAL_PRINCIPAL } from "@depute/service";
import type { Dependencies } from "./dependencies.ts";

/** The registry's agents have keys of this many characters. */
const KEY_CHARS = 43;
const PAGE_SIZE = 100;

/** Agents of one principal, whose manifests name the delegate, that the registry is asked about. */
const MAX_ASKED = 16;

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
 * Depute's choice: the description of the work is the reason that the rule asks for. A principal without an agent that has
 * a manifest is not restricted, because nothing says to whom; one with several may do what one of them may, because the
 * same key speaks for all.
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
  const candidates = await findCandidates(dependencies, delegator, to, options);
  const justification = Array.from(description).slice(0, MAX_JUSTIFICATION).join("");
  let refusal: DeputeError | undefined;
  for (const fromAgentId of candidates) {
    const question = { fromAgentId, toAgentId: to, justification, ...(task && { task }) };
    const answer = await dependencies.policy.checkDelegation(question, options);
    const { allowed, decision } = answer;
    // Its manifest was taken away since it was listed.
    if (allowed || decision === PolicyDecision.NO_MANIFEST) return;
    refusal ??= notAllowed(fromAgentId, to, answer);
  }
  if (refusal !== undefined) throw refusal;
}

/** The ids of the principal's agents whose manifests name the delegate; of one other that has a manifest, if none does. */
async function findCandidates(
  { agents }: Dependencies,
  principal: string,
  to: string,
  options: CallOptions,
): Promise<string[]> {
  const naming: string[] = [];
  let other: string | undefined;
  let pageToken = "";
  do {
    const page = await agents.listAgents({ principal, pageSize: PAGE_SIZE, pageToken }, options);
    for (const { id, manifest } of page.agents) {
      if (manifest === undefined) continue;
      if (manifest.allowedAgents.some((name) => isMeant(name, to))) naming.push(id);
      else other ??= id;
    }
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && naming.length < MAX_ASKED);
  if (naming.length > 0) return naming.slice(0, MAX_ASKED);
  return other === undefined ? [] : [other];
}

/** Whether a manifest that names an agent means this one: an instance counts as the agent before its colon. */
function isMeant(name: string, to: string): boolean {
  return name === to || to.startsWith(`${name}:`);
}

function notAllowed(
  from: string,
  to: string,
  { decision, predicateFailure }: CheckDelegationResponse,
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
