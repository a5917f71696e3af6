import type { DescService } from "@bufbuild/protobuf";
import type { ServiceName } from "../table/command.ts";

/** Loads the contract of each service on demand, so that a command loads only the contracts that it uses. */
const LOADERS: Readonly<Record<ServiceName, () => Promise<DescService>>> = {
  cluster: async () =>
    (await import("@depute/contracts/depute/registry/v1/cluster_service_pb")).ClusterService,
  agents: async () => (await import("@depute/contracts/depute/registry/v1/agent_service_pb")).AgentService,
  audit: async () => (await import("@depute/contracts/depute/tokens/v1/audit_service_pb")).AuditService,
  authorities: async () =>
    (await import("@depute/contracts/depute/registry/v1/authority_service_pb")).AuthorityService,
  contracts: async () =>
    (await import("@depute/contracts/depute/verifier/v1/contract_service_pb")).ContractService,
  delegations: async () =>
    (await import("@depute/contracts/depute/tokens/v1/delegation_service_pb")).DelegationService,
  discovery: async () =>
    (await import("@depute/contracts/depute/registry/v1/discovery_service_pb")).DiscoveryService,
  executions: async () =>
    (await import("@depute/contracts/depute/tasks/v1/execution_service_pb")).ExecutionService,
  keys: async () => (await import("@depute/contracts/depute/tokens/v1/key_service_pb")).KeyService,
  log: async () => (await import("@depute/contracts/depute/verifier/v1/log_service_pb")).LogService,
  messages: async () => (await import("@depute/contracts/depute/tasks/v1/message_service_pb")).MessageService,
  offers: async () => (await import("@depute/contracts/depute/registry/v1/offer_service_pb")).OfferService,
  organizations: async () =>
    (await import("@depute/contracts/depute/registry/v1/organization_service_pb")).OrganizationService,
  policy: async () => (await import("@depute/contracts/depute/registry/v1/policy_service_pb")).PolicyService,
  proposals: async () =>
    (await import("@depute/contracts/depute/registry/v1/proposal_service_pb")).ProposalService,
  reviews: async () => (await import("@depute/contracts/depute/verifier/v1/review_service_pb")).ReviewService,
  revocations: async () =>
    (await import("@depute/contracts/depute/tokens/v1/revocation_service_pb")).RevocationService,
  rootKeys: async () =>
    (await import("@depute/contracts/depute/tokens/v1/root_key_service_pb")).RootKeyService,
  sessions: async () => (await import("@depute/contracts/depute/tasks/v1/session_service_pb")).SessionService,
  tasks: async () => (await import("@depute/contracts/depute/tasks/v1/task_service_pb")).TaskService,
  tokens: async () => (await import("@depute/contracts/depute/tokens/v1/token_service_pb")).TokenService,
  trust: async () => (await import("@depute/contracts/depute/registry/v1/trust_service_pb")).TrustService,
  witness: async () =>
    (await import("@depute/contracts/depute/verifier/v1/witness_service_pb")).WitnessService,
};

/** Loads the contract of a service. */
export function loadService(name: ServiceName): Promise<DescService> {
  return LOADERS[name]();
}
