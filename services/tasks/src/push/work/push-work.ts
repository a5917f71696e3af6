import { create, fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import type { Work, WorkResult } from "@depute/client";
import type { Assignment, Lease } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { InvokeRequestSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { DEFAULT_RESULT_BUDGET } from "@depute/core";
import { currentHash, type Invoked } from "../peers/peer.ts";
import { budgetOf, isSameVersion } from "../rules/hand-over.ts";
import { PeerFault } from "../rules/refusal.ts";
import { type AtPeer, inputOf, type Push, reach, requireContexts, shareAll, toFailure } from "./at-peer.ts";
import { Delegated } from "./delegated.ts";

/**
 * The work of an assignment, done by the agent's own NEKTE server: `nekte.invoke` for a capability, `nekte.delegate` for
 * free work. It is carried out as any worker's is, under the same lease.
 *
 * @param endpoint the agent's address
 */
export function workAt(push: Push, endpoint: string, assignment: Assignment, lease: Lease): Work {
  return async (_input, context) => {
    try {
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
 * Invokes a capability (NEKTE 2). Its result has to fit the capability's schema, which only the full one surely does, so
 * that one is asked for, within the task's own budget.
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
  // What cannot be a result here is refused before anything is made of it.
  fromJson(ValueSchema, output);
  return { output, tokensUsed };
}

/**
 * Names the version that the task was made for. An endpoint may write the same version with more digits: it is then named
 * as the endpoint writes it, so that no version runs unnamed.
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
