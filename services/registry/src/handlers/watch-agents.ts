import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type AgentChange,
  AgentChangeKind,
  AgentChangeSchema,
  type WatchAgentsRequest,
  type WatchAgentsResponse,
  WatchAgentsResponseSchema,
} from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { DeputeError, ErrorReason, toTimestamp } from "@depute/core";
import { follow, linkSignals } from "@depute/service";
import type { ReadTx } from "@depute/store";
import { AGENTS_TOPIC, identify, type RegistryContext, viewerFor } from "../context.ts";
import { toAgentMessage, type Viewer } from "../rules/agent.ts";
import { findAgent } from "../store/agents.ts";
import { changeBounds, listChanges, type StoredChange } from "../store/changes.ts";
import { isVisible } from "../store/visibility.ts";

/** Milliseconds between two reads of the log if no wake-up arrives. */
const POLL_MS = 5_000;
/** Number of consecutive hidden changes after which a response reports the watcher's position. */
const POSITION_EVERY = 1_000;

interface ObservedAgents {
  readonly sequence: number;
  /** The change; undefined if the watcher may not see it, or asked for another agent. */
  readonly change: AgentChange | undefined;
}

/** Implements AgentService.WatchAgents. */
export async function* watchAgents(
  registry: RegistryContext,
  request: WatchAgentsRequest,
  context: HandlerContext,
): AsyncGenerator<WatchAgentsResponse, void, undefined> {
  const viewer = viewerFor(await identify(registry, context), "");
  const { afterSequence, sendStart, agentId } = request;
  const after = await registry.store.read(async (tx) => {
    const bounds = await changeBounds(tx);
    const start = afterSequence === undefined ? bounds.last : Number(afterSequence);
    checkKept(start, bounds);
    return start;
  });
  if (sendStart) yield response(after);
  let passedOver = 0;
  const link = linkSignals(context.signal, registry.stopping);
  try {
    const observations = follow<ObservedAgents, number>({
      after,
      read: (position, limit) =>
        registry.store.read(async (tx) => {
          checkKept(position, await changeBounds(tx));
          const changes = await listChanges(tx, position, limit);
          return Promise.all(changes.map((change) => asSeen(registry, tx, change, viewer, agentId)));
        }),
      position: ({ sequence }) => sequence,
      wake: (listener) => registry.bus.subscribe(AGENTS_TOPIC, listener),
      pollMs: POLL_MS,
      timers: registry.timers,
      signal: link.signal,
    });
    for await (const { sequence, change } of observations) {
      passedOver = change === undefined ? passedOver + 1 : 0;
      if (change !== undefined) yield response(sequence, change);
      else if (passedOver % POSITION_EVERY === 0) yield response(sequence);
    }
  } finally {
    link.release();
  }
}

/**
 * Requires that the log still has every change after a position.
 *
 * @throws DeputeError REVISION_COMPACTED when the log has deleted a change after the position, or ends before the
 * position
 */
function checkKept(position: number, { first, last }: { first: number; last: number }): void {
  if (position >= first - 1 && position <= last) return;
  const message = `the log has deleted changes after ${position}; list the agents again, and watch from the new position`;
  throw new DeputeError(ErrorReason.REVISION_COMPACTED, message, {
    metadata: { first_revision: String(first) },
  });
}

async function asSeen(
  registry: RegistryContext,
  tx: ReadTx,
  change: StoredChange,
  viewer: Viewer,
  requestedAgentId: string,
): Promise<ObservedAgents> {
  const { revision: sequence, agentId, before } = change;
  if (requestedAgentId !== "" && requestedAgentId !== agentId) return { sequence, change: undefined };
  const agent = await findAgent(tx, agentId);
  if (agent !== undefined && (await isVisible(tx, viewer, agent.record))) {
    const now = toAgentMessage(agent, await registry.guard.view(tx));
    return { sequence, change: changed(change, change.kind, now) };
  }
  const withdrawn = before !== undefined && (await isVisible(tx, viewer, before));
  return { sequence, change: withdrawn ? changed(change, AgentChangeKind.WITHDRAWN) : undefined };
}

function changed(
  { agentId, time }: StoredChange,
  kind: AgentChangeKind,
  agent?: ReturnType<typeof toAgentMessage>,
): AgentChange {
  const message = create(AgentChangeSchema, { agentId, kind, changeTime: toTimestamp(time) });
  if (agent !== undefined) message.agent = agent;
  return message;
}

/** Returns a response with a change and its position in the log, or with only the position. */
function response(sequence: number, change?: AgentChange): WatchAgentsResponse {
  const message = create(WatchAgentsResponseSchema, { sequence: BigInt(sequence) });
  if (change !== undefined) message.change = change;
  return message;
}
