import type { MessageInitShape } from "@bufbuild/protobuf";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { OrganizationService } from "@depute/contracts/depute/registry/v1/organization_service_pb";
import {
  type RecordEvidenceRequestSchema,
  TrustService,
} from "@depute/contracts/depute/registry/v1/trust_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { defineService } from "@depute/service";

/**
 * A registry that finds agents by principal and records evidence.
 *
 * @param agents the agents' ids, by principal
 * @param proven the proven organizations, by principal
 */
export function fakeRegistry(
  agents: Record<string, readonly string[]>,
  proven: Record<string, readonly string[]> = {},
) {
  const principalOf = (agentId: string) =>
    Object.entries(agents).find(([, ids]) => ids.includes(agentId))?.[0];
  const evidence: MessageInitShape<typeof RecordEvidenceRequestSchema>[] = [];
  const state = { away: false };
  const module = defineService({
    name: "registry",
    settings: {},
    descriptors: [AgentService, OrganizationService, TrustService],
    async start() {
      return {
        routes(router) {
          router.service(AgentService, {
            listAgents({ principal }) {
              if (state.away) throw DeputeError.received(ErrorReason.DEPENDENCY_UNAVAILABLE, "away");
              return { agents: (agents[principal] ?? []).map((id) => ({ id })) };
            },
          });
          router.service(OrganizationService, {
            batchGetAffiliations({ agentIds }) {
              const affiliations = agentIds.flatMap((agentId) => {
                const principal = principalOf(agentId);
                if (principal === undefined) return [];
                return [{ agentId, principal, organizations: [...(proven[principal] ?? [])] }];
              });
              return { affiliations };
            },
          });
          router.service(TrustService, {
            recordEvidence(request) {
              if (evidence.some(({ evidenceId }) => evidenceId === request.evidenceId)) {
                throw DeputeError.received(ErrorReason.EVIDENCE_EXISTS, "there already");
              }
              evidence.push(request);
              return {};
            },
          });
        },
        async close() {},
      };
    },
  });
  return { module, evidence, state };
}

export type FakeRegistry = ReturnType<typeof fakeRegistry>;
