import { create, fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import type { Work, WorkResult } from "@depute/client";
import type { Assignment, Lease } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { InvokeRequestSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { DEFAULT_RESULT_BUDGET } from "@depute/core";
import { currentHash, type Invoked } from "../peers/peer.ts";
import { readA2aAddress } from "../rules/agent-address.ts";
import { budgetOf, isSameVersion } from "../rules/hand-over.ts";
import { PeerFault } from "../rules/refusal.ts";
import { A2aDelegated } from "./a2a-delegated.ts";
import { type AtPeer, inputOf, type Push, reach, requireContexts, shareAll, toFailure } from "./at-peer.ts";
import { Delegated } from "./delegated.ts";

/**
 * Returns the work function of an assignment at the agent's own server. A NEKTE server gets `nekte.invoke` for work
 * with a capability, and `nekte.delegate` for other work. An A2A server gets a message.
 *
 * @param endpoint the agent's address, as `addressOf` returns it
 */
export function workAt(push: Push, endpoint: string, assignment: Assignment, lease: Lease): Work {
  return async (_input, context) => {
    try {
      const address = readA2aAddress(endpoint);
      if (address !== undefined) {
        return await A2aDelegated.run({ push, address, endpoint, assignment, lease, context });
      }
      const peer = await push.peerAt(endpoint);
      const at = { push, peer, endpoint, assignment, lease, context };
      if (context.task.capabilityId !== "") {
        try {
          return await invoke(at);
        } finally {
          peer.close();
        }
      }
      return await Delegated.run(at);
    } catch (thrown) {
      throw thrown instanceof PeerFault ? toFailure(thrown) : thrown;
    }
  };
}

/**
 * Invokes a capability (NEKTE 2) within the task's budget. Requests the full level, because shorter levels may not fit
 * the capability's schema.
 */
async function invoke(at: AtPeer): Promise<WorkResult> {
  const { push, assignment, lease, context } = at;
  const { task, signal } = context;
  requireContexts(assignment);
  await shareAll(at, 0, `${task.id}.${lease.epoch}`);
  const { maxTokens } = task.budget ?? DEFAULT_RESULT_BUDGET;
  const request = create(InvokeRequestSchema, {
    cap: task.capabilityId,
    input: new TextEncoder().encode(JSON.stringify(inputOf(task) ?? null)),
    budget: budgetOf({ maxTokens, detailLevel: "full" }),
  });
  const { output, tokensUsed } = await reach(push, signal, () => invokeVersion(at, request));
  // Throws if the output is not a valid JSON value.
  fromJson(ValueSchema, output);
  return { output, tokensUsed };
}

/**
 * Invokes the task's version of the capability. If the endpoint has a longer or shorter hash of the same version,
 * repeats the call with that hash.
 */
async function invokeVersion(
  { peer, context }: AtPeer,
  request: ReturnType<typeof create<typeof InvokeRequestSchema>>,
): Promise<Invoked> {
  const { task, signal } = context;
  if (task.capabilityHash === "") return peer.invoke(request, signal);
  try {
    return await peer.invoke({ ...request, h: task.capabilityHash }, signal);
  } catch (thrown) {
    const theirs = currentHash(thrown);
    if (theirs === undefined || !isSameVersion(task.capabilityHash, theirs)) throw thrown;
    return peer.invoke({ ...request, h: theirs }, signal);
  }
}
