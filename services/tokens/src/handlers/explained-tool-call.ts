import type { ExplainedToolCall } from "@depute/contracts/depute/tokens/v1/authority_explanation_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { formatTime } from "@depute/dct";
import type { TokensContext } from "../context.ts";
import { partiesOf } from "../delegation-log.ts";
import type { AuditEntry } from "../rules/audit-record.ts";
import { callsOf, decisionsOn } from "../rules/tool-calls.ts";
import { readToolCalls } from "../store/audit-rows.ts";
import type { StoredDelegation } from "../store/delegation-rows.ts";
import type { Subject, Viewer } from "./explained.ts";

/**
 * Maximum number of decisions that one look-up reads for an AuditRecord.request_id. An id has more decisions only if a
 * client uses it for many calls.
 */
const MAX_READ = 64;

/**
 * Finds a tool call in the audit log. The holder of the presented token, the parties of its chain and auditors may see
 * the explanation.
 *
 * @throws DeputeError TOOL_CALL_NOT_FOUND, TOOL_CALL_AMBIGUOUS, DELEGATION_NOT_FOUND
 */
export async function ofToolCall(
  tokens: TokensContext,
  { requestId, sequence }: ExplainedToolCall,
  viewer: Viewer,
): Promise<Subject> {
  const { store } = tokens;
  const all = await store.read((tx) => readToolCalls(tx, { requestId, id: 0 }, MAX_READ));
  const visible = await seen(tokens, all, viewer);
  const seenDecisions = [...visible.keys()];
  const calls = callsOf(seenDecisions);
  const named = sequence === 0n ? calls : calls.filter(({ id }) => id === Number(sequence));
  const [call, ...others] = named;
  if (call === undefined) throw notFound(requestId);
  if (others.length > 0) throw ambiguous(requestId, named);
  const decisions = calls.length === 1 ? decisionsOn(call, seenDecisions) : [call];
  const chain = visible.get(call) ?? [];
  const { blocks, principal, time, call: at } = call;
  if (chain.length < blocks.length) throw notRecorded(requestId);
  return {
    ...{ kind: "tool_call", id: requestId, chain, principal, time, proofs: {}, records: decisions },
    toolCall: {
      resource: at.resource ?? "",
      allowed: decisions.every(({ decision }) => decision === "allowed"),
      decisions: decisions.map((one) => ({
        ...{ sequence: one.id, source: one.source, caller: one.caller, reason: one.reason },
        ...{ time: formatTime(one.time), allowed: one.decision === "allowed" },
      })),
      revocationIds: blocks,
    },
  };
}

/**
 * Returns those decisions that the caller may see, in the given order. The map's value for a decision is the recorded
 * chain of the decision's token.
 */
async function seen(
  { delegations }: TokensContext,
  decisions: readonly AuditEntry[],
  viewer: Viewer,
): Promise<Map<AuditEntry, StoredDelegation[]>> {
  const visible = new Map<AuditEntry, StoredDelegation[]>();
  const chains = new Map<string, StoredDelegation[]>();
  for (const decision of decisions) {
    const { blocks, principal, call } = decision;
    const key = blocks.join();
    const chain = chains.get(key) ?? (await delegations.chainOfBlocks(blocks));
    chains.set(key, chain);
    const maySee =
      viewer.maySee([...partiesOf(chain), principal], chain.at(-1)?.organization ?? "") ||
      viewer.audits(call.organization ?? "");
    if (maySee) visible.set(decision, chain);
  }
  return visible;
}

function notFound(requestId: string): DeputeError {
  return new DeputeError(
    ErrorReason.TOOL_CALL_NOT_FOUND,
    "the audit log has no record of this tool call; check the id, or try again one second after the call",
    { metadata: { request_id: requestId } },
  );
}

function ambiguous(requestId: string, calls: readonly AuditEntry[]): DeputeError {
  return new DeputeError(
    ErrorReason.TOOL_CALL_AMBIGUOUS,
    "several tool calls have this request id; name the sequence of one of their audit records",
    { metadata: { request_id: requestId, candidates: calls.map(({ id }) => id).join(",") } },
  );
}

function notRecorded(requestId: string): DeputeError {
  return new DeputeError(
    ErrorReason.DELEGATION_NOT_FOUND,
    "the token of the call is not recorded here; record it with RecordToken, or explain the token itself",
    { metadata: { delegation: "", request_id: requestId } },
  );
}
