import { type Client, createClient } from "@connectrpc/connect";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { DiscoveryService } from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { OfferService } from "@depute/contracts/depute/registry/v1/offer_service_pb";
import { TrustService } from "@depute/contracts/depute/registry/v1/trust_service_pb";
import { ContextService } from "@depute/contracts/depute/tasks/v1/context_service_pb";
import { ExecutionService } from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import { MessageService } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { SessionService } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { AttestationService } from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { ContractService } from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import { ResultService } from "@depute/contracts/depute/verifier/v1/result_service_pb";
import { ReviewService } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import type { ServiceDeps } from "@depute/service";

/** The services as the wires call them. */
export interface Clients {
  readonly agents: Client<typeof AgentService>;
  readonly discovery: Client<typeof DiscoveryService>;
  readonly tasks: Client<typeof TaskService>;
  readonly contexts: Client<typeof ContextService>;
  readonly offers: Client<typeof OfferService>;
  readonly executions: Client<typeof ExecutionService>;
  readonly sessions: Client<typeof SessionService>;
  readonly messages: Client<typeof MessageService>;
  readonly trust: Client<typeof TrustService>;
  readonly tokens: Client<typeof TokenService>;
  readonly revocations: Client<typeof RevocationService>;
  readonly contracts: Client<typeof ContractService>;
  readonly attestations: Client<typeof AttestationService>;
  readonly results: Client<typeof ResultService>;
  readonly reviews: Client<typeof ReviewService>;
}

export function createClients(connect: ServiceDeps["connect"]): Clients {
  return {
    agents: createClient(AgentService, connect("registry")),
    discovery: createClient(DiscoveryService, connect("registry")),
    tasks: createClient(TaskService, connect("tasks")),
    contexts: createClient(ContextService, connect("tasks")),
    offers: createClient(OfferService, connect("registry")),
    executions: createClient(ExecutionService, connect("tasks")),
    sessions: createClient(SessionService, connect("tasks")),
    messages: createClient(MessageService, connect("tasks")),
    trust: createClient(TrustService, connect("registry")),
    tokens: createClient(TokenService, connect("tokens")),
    revocations: createClient(RevocationService, connect("tokens")),
    contracts: createClient(ContractService, connect("verifier")),
    attestations: createClient(AttestationService, connect("verifier")),
    results: createClient(ResultService, connect("verifier")),
    reviews: createClient(ReviewService, connect("verifier")),
  };
}
