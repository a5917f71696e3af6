import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
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
import { present } from "../rules/agent.ts";
import { findAgent } from "../store/agents.ts";
import { changeBounds, listChanges, type StoredChange } from "../store/changes.ts";
import { sees, type Viewer } from "../store/sight.ts";

/** Milliseconds between looks when nothing wakes. */
const POLL_MS = 5_000;
/** Changes of others that are passed over before the watcher is told how far it is. */
const BOOKMARK_EVERY = 1_000;

interface Seen {
  readonly revision: number;
  /** Undefined for what does not concern the watcher. */
  readonly event: WatchAgentsResponse | undefined;
}

/** AgentService.WatchAgents. */
export async function* watchAgents(
  registry: RegistryContext,
  request: WatchAgentsRequest,
  context: HandlerContext,
): AsyncGenerator<WatchAgentsResponse, void, undefined> {
  const viewer = viewerFor(await identify(registry, context), "");
  const { afterRevision, agentId } = request;
  const after = await registry.store.read(async (tx) => {
    const bounds = await changeBounds(tx);
    const start = afterRevision === undefined ? bounds.last : Number(afterRevision);
    checkKept(start, bounds);
    return start;
  });
  yield bookmark(after);
  let passedOver = 0;
  const link = linkSignals(context.signal, registry.stopping);
  try {
    const seen = follow<Seen, number>({
      after,
      read: (position, limit) =>
        registry.store.read(async (tx) => {
          checkKept(position, await changeBounds(tx));
          const changes = await listChanges(tx, position, limit);
          return Promise.all(changes.map((change) => asSeen(registry, tx, change, viewer, agentId)));
        }),
      position: ({ revision }) => revision,
      wake: (listener) => registry.bus.subscribe(AGENTS_TOPIC, listener),
      pollMs: POLL_MS,
      timers: registry.timers,
      signal: link.signal,
    });
    for await (const { revision, event } of seen) {
      passedOver = event === undefined ? passedOver + 1 : 0;
      if (event !== undefined) yield event;
      else if (passedOver % BOOKMARK_EVERY === 0) yield bookmark(revision);
    }
  } finally {
    link.release();
  }
}

/** @throws DeputeError REVISION_COMPACTED when a change after the position may be missing */
function checkKept(position: number, { first, last }: { first: number; last: number }): void {
  if (position >= first - 1 && position <= last) return;
  const message = `the changes after ${position} are not kept; list again, and watch from there`;
  throw new DeputeError(ErrorReason.REVISION_COMPACTED, message, {
    metadata: { first_revision: String(first) },
  });
}

async function asSeen(
  registry: RegistryContext,
  tx: ReadTx,
  change: StoredChange,
  viewer: Viewer,
  wanted: string,
): Promise<Seen> {
  const { revision, agentId, before } = change;
  if (wanted !== "" && wanted !== agentId) return { revision, event: undefined };
  const agent = await findAgent(tx, agentId);
  if (agent !== undefined && (await sees(tx, viewer, agent.record))) {
    const now = present(agent, await registry.guard.view(tx));
    return { revision, event: changed(change, change.kind, now) };
  }
  const withdrawn = before !== undefined && (await sees(tx, viewer, before));
  return { revision, event: withdrawn ? changed(change, AgentChangeKind.WITHDRAWN) : undefined };
}

function changed(
  { revision, agentId, time }: StoredChange,
  kind: AgentChangeKind,
  agent?: ReturnType<typeof present>,
): WatchAgentsResponse {
  const value = create(AgentChangeSchema, {
    revision: BigInt(revision),
    agentId,
    kind,
    time: toTimestamp(time),
  });
  if (agent !== undefined) value.agent = agent;
  return create(WatchAgentsResponseSchema, { event: { case: "change", value } });
}

function bookmark(revision: number): WatchAgentsResponse {
  return create(WatchAgentsResponseSchema, { event: { case: "bookmark", value: BigInt(revision) } });
}
