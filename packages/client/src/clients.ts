import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { DelegateosService } from "@depute/contracts/depute/delegateos/v1/delegateos_service_pb";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { AuthorityService } from "@depute/contracts/depute/registry/v1/authority_service_pb";
import { DiscoveryService } from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { OfferService } from "@depute/contracts/depute/registry/v1/offer_service_pb";
import { OrganizationService } from "@depute/contracts/depute/registry/v1/organization_service_pb";
import { PolicyService } from "@depute/contracts/depute/registry/v1/policy_service_pb";
import { TrustService } from "@depute/contracts/depute/registry/v1/trust_service_pb";
import { ArtifactService } from "@depute/contracts/depute/tasks/v1/artifact_service_pb";
import { ContextService } from "@depute/contracts/depute/tasks/v1/context_service_pb";
import { ExecutionService } from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import { MessageService } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { SessionService as AspSessionService } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { DelegationService } from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import { KeyService } from "@depute/contracts/depute/tokens/v1/key_service_pb";
import { RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { SessionService } from "@depute/contracts/depute/tokens/v1/session_service_pb";
import { SpendService } from "@depute/contracts/depute/tokens/v1/spend_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { AttestationService } from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { ContractService } from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import { LogService } from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { ResultService } from "@depute/contracts/depute/verifier/v1/result_service_pb";
import { ReviewService } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";

/** The platform's services, by the names that the SDK gives them. */
export const SERVICES = {
  agents: AgentService,
  discovery: DiscoveryService,
  offers: OfferService,
  authorities: AuthorityService,
  organizations: OrganizationService,
  policy: PolicyService,
  trust: TrustService,
  tasks: TaskService,
  workers: WorkerService,
  contexts: ContextService,
  artifacts: ArtifactService,
  /** ASP's sessions, in which agents negotiate. */
  aspSessions: AspSessionService,
  /** Agenta's executions: what was bought on an offer. */
  executions: ExecutionService,
  /** CAP's messages between agents, and people. */
  messages: MessageService,
  /** DelegateOS's exchange: delegate, complete, revoke. */
  delegateos: DelegateosService,
  tokens: TokenService,
  revocations: RevocationService,
  spend: SpendService,
  delegations: DelegationService,
  keys: KeyService,
  /** Sessions of holder proofs: one proof opens it, then a code a call. */
  proofSessions: SessionService,
  contracts: ContractService,
  verification: VerificationService,
  attestations: AttestationService,
  log: LogService,
  reviews: ReviewService,
  results: ResultService,
} as const satisfies Record<string, DescService>;

/** One client for each of the platform's services. */
export type DeputeClients = {
  readonly [Name in keyof typeof SERVICES]: Client<(typeof SERVICES)[Name]>;
};

/** Clients over a transport of the caller's own: Connect, gRPC, grpc-js, in process. */
export function clientsOver(transport: Transport): DeputeClients {
  const clients = Object.entries(SERVICES).map(([name, service]) => [name, createClient(service, transport)]);
  return Object.fromEntries(clients) as DeputeClients;
}

/**
 * Clients of the gateway at `url`, over the Connect protocol and HTTP/2.
 *
 * @param interceptors what every call passes, e.g. `holderInterceptor`
 */
export function connectTo(url: string, interceptors: Interceptor[] = []): DeputeClients {
  return clientsOver(createConnectTransport({ baseUrl: url, httpVersion: "2", interceptors }));
}
