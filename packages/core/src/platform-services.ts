import type { DescService } from "@bufbuild/protobuf";
import { DelegateosService } from "@depute/contracts/depute/gateway/v1/delegateos_service_pb";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { AuthorityService } from "@depute/contracts/depute/registry/v1/authority_service_pb";
import { ClusterService } from "@depute/contracts/depute/registry/v1/cluster_service_pb";
import { DiscoveryService } from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { OfferService } from "@depute/contracts/depute/registry/v1/offer_service_pb";
import { OrganizationService } from "@depute/contracts/depute/registry/v1/organization_service_pb";
import { PolicyService } from "@depute/contracts/depute/registry/v1/policy_service_pb";
import { ProposalService } from "@depute/contracts/depute/registry/v1/proposal_service_pb";
import { TrustService } from "@depute/contracts/depute/registry/v1/trust_service_pb";
import { ArtifactService } from "@depute/contracts/depute/tasks/v1/artifact_service_pb";
import { ContextService } from "@depute/contracts/depute/tasks/v1/context_service_pb";
import { ConversationService } from "@depute/contracts/depute/tasks/v1/conversation_service_pb";
import { ExecutionService } from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import { MessageService } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { SessionService as AspSessionService } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { AuditService } from "@depute/contracts/depute/tokens/v1/audit_service_pb";
import { DelegationService } from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import { HolderSessionService } from "@depute/contracts/depute/tokens/v1/holder_session_service_pb";
import { KeyService } from "@depute/contracts/depute/tokens/v1/key_service_pb";
import { RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { RootKeyService } from "@depute/contracts/depute/tokens/v1/root_key_service_pb";
import { SpendService } from "@depute/contracts/depute/tokens/v1/spend_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { AttestationService } from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { ContractService } from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import { LogService } from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { ResultService } from "@depute/contracts/depute/verifier/v1/result_service_pb";
import { ReviewService } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import { WitnessService } from "@depute/contracts/depute/verifier/v1/witness_service_pb";

/**
 * The only list of the platform's RPC services, by module, under the names that clients use. The modules'
 * descriptors, the gateway's forwarding and the SDK's clients come from this list.
 */
export const PLATFORM_SERVICES = {
  registry: {
    agents: AgentService,
    authorities: AuthorityService,
    /** The replicas of the platform, for operators. */
    cluster: ClusterService,
    discovery: DiscoveryService,
    organizations: OrganizationService,
    policy: PolicyService,
    offers: OfferService,
    /** Proposals of grants. A review decides each proposal. */
    proposals: ProposalService,
    trust: TrustService,
  },
  tasks: {
    tasks: TaskService,
    workers: WorkerService,
    contexts: ContextService,
    artifacts: ArtifactService,
    /** ASP's sessions, in which agents negotiate. */
    aspSessions: AspSessionService,
    /** CAP's messages, between agents and with people. */
    messages: MessageService,
    /** A2A's view of tasks, with their messages. */
    conversations: ConversationService,
    /** Agenta's executions of offers. */
    executions: ExecutionService,
  },
  tokens: {
    audit: AuditService,
    tokens: TokenService,
    revocations: RevocationService,
    spend: SpendService,
    delegations: DelegationService,
    keys: KeyService,
    /** The platform's root keys. */
    rootKeys: RootKeyService,
    /** Holder sessions. One proof opens a session, and each later call carries an authentication code. */
    proofSessions: HolderSessionService,
  },
  verifier: {
    contracts: ContractService,
    verification: VerificationService,
    attestations: AttestationService,
    log: LogService,
    reviews: ReviewService,
    results: ResultService,
    /** Heads of other platforms' logs. */
    witness: WitnessService,
  },
  gateway: {
    /** DelegateOS's requests: delegate, complete and revoke. */
    delegateos: DelegateosService,
  },
} as const satisfies Record<string, Readonly<Record<string, DescService>>>;

/** Returns the services of one module. */
export function servicesOf(module: keyof typeof PLATFORM_SERVICES): readonly DescService[] {
  return Object.values(PLATFORM_SERVICES[module]);
}
