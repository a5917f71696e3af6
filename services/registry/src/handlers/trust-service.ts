import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { TrustComponentsSchema } from "@depute/contracts/asp/v0/agent_card_pb";
import {
  BayesianViewSchema,
  type ExplainTrustRequest,
  ExplainTrustResponseSchema,
  type GetTrustRequest,
  GetTrustResponseSchema,
  TrustEntrySchema,
  type TrustService,
  type TrustView,
  TrustViewSchema,
} from "@depute/contracts/depute/registry/v1/trust_service_pb";
import { DeputeError, ErrorReason, encodePageToken, pageSize, toTimestamp } from "@depute/core";
import { bytesOf, cutPage } from "@depute/service";
import { agentNotFound, identify, type RegistryContext, viewerFor } from "../context.ts";
import { readPosition } from "../page-position.ts";
import { bayesianView } from "../rules/bayesian.ts";
import { baseOf } from "../rules/registration.ts";
import { decay, type TrustState, trustLevel, trustScore } from "../rules/trust.ts";
import { findVisible } from "../store/agents.ts";
import { listEvidence } from "../store/trust.ts";
import { findTrustOrInitial } from "./initial-trust.ts";
import { isParty, recordEvidence } from "./record-evidence.ts";

export function trustService(registry: RegistryContext): ServiceImpl<typeof TrustService> {
  return {
    recordEvidence: (request, context) => recordEvidence(registry, request, context),
    getTrust: (request, context) => getTrust(registry, request, context),
    explainTrust: (request, context) => explainTrust(registry, request, context),
  };
}

async function getTrust(registry: RegistryContext, request: GetTrustRequest, context: HandlerContext) {
  const identity = await identify(registry, context);
  const viewer = viewerFor(identity, "");
  const [id, counterpartId] = [request.agentId, request.counterpartAgentId].map(
    (each) => baseOf(each) ?? each,
  );
  if (id === undefined) throw agentNotFound(request.agentId);
  const now = registry.clock.now();
  return registry.store.read(async (tx) => {
    const agent = await findVisible(tx, id, viewer);
    if (agent === undefined) throw agentNotFound(request.agentId);
    const { trust, bayesian } = await findTrustOrInitial(tx, agent, id, "", now);
    const answer = create(GetTrustResponseSchema, {
      overall: toTrustView(trust, now, registry.trustLevels),
      bayesian: create(BayesianViewSchema, bayesianView(bayesian, now)),
    });
    if (counterpartId === undefined || counterpartId === "") return answer;
    const counterpart = await findVisible(tx, counterpartId, viewer);
    if (!isParty(identity, [agent, counterpart])) {
      throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "the caller must act for one of the two agents", {
        violations: [
          {
            field: "counterpart_agent_id",
            description: "neither this agent nor agent_id belongs to the caller",
          },
        ],
      });
    }
    if (counterpart === undefined) throw agentNotFound(request.counterpartAgentId);
    const pair = await findTrustOrInitial(tx, agent, id, counterpartId, now);
    answer.pair = toTrustView(pair.trust, now, registry.trustLevels);
    answer.pairBayesian = create(BayesianViewSchema, bayesianView(pair.bayesian, now));
    return answer;
  });
}

async function explainTrust(
  registry: RegistryContext,
  request: ExplainTrustRequest,
  context: HandlerContext,
) {
  const identity = await identify(registry, context);
  const id = baseOf(request.agentId) ?? request.agentId;
  const counterpartId = baseOf(request.counterpartAgentId) ?? request.counterpartAgentId;
  const filters = { list: "trust-evidence", id, counterpartId };
  const [before] = readPosition(request.pageToken, filters, ["number"]) ?? [Number.MAX_SAFE_INTEGER];
  const size = pageSize(request.pageSize);
  const trustRows = await registry.store.read(async (tx) => {
    const agent = await findVisible(tx, id, viewerFor(identity, ""));
    if (agent === undefined) throw agentNotFound(request.agentId);
    const givenBy = isParty(identity, [agent]) ? undefined : identity.principal;
    return listEvidence(tx, id, counterpartId, givenBy, { before, limit: size + 1 });
  });
  const { items: entries, more } = cutPage(trustRows, size, (entry) => bytesOf(TrustEntrySchema, entry));
  const last = entries.at(-1)?.sequence;
  return create(ExplainTrustResponseSchema, {
    entries,
    nextPageToken: last !== undefined && more ? encodePageToken([Number(last)], filters) : "",
  });
}

/** Converts a trust state, faded until the time `now`, to its contract message. */
export function toTrustView(state: TrustState, now: number, levels: readonly number[]): TrustView {
  const faded = decay(state, now);
  const score = trustScore(faded);
  const view = create(TrustViewSchema, {
    score,
    level: trustLevel(score, levels),
    components: create(TrustComponentsSchema, faded.components),
    evidenceCount: BigInt(state.count),
  });
  if (state.count > 0) view.lastEvidenceTime = toTimestamp(state.time);
  return view;
}
