import { type Client, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { DiscoveryService } from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { ArtifactService } from "@depute/contracts/depute/tasks/v1/artifact_service_pb";
import { ContextService } from "@depute/contracts/depute/tasks/v1/context_service_pb";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { AttestationService } from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { ContractService } from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";

/** One client for each of the platform's services. */
export interface DeputeClients {
  readonly agents: Client<typeof AgentService>;
  readonly discovery: Client<typeof DiscoveryService>;
  readonly tasks: Client<typeof TaskService>;
  readonly workers: Client<typeof WorkerService>;
  readonly contexts: Client<typeof ContextService>;
  readonly artifacts: Client<typeof ArtifactService>;
  readonly tokens: Client<typeof TokenService>;
  readonly revocations: Client<typeof RevocationService>;
  readonly contracts: Client<typeof ContractService>;
  readonly verification: Client<typeof VerificationService>;
  readonly attestations: Client<typeof AttestationService>;
}

/** Clients over a transport of the caller's own: Connect, gRPC, grpc-js, in process. */
export function clientsOver(transport: Transport): DeputeClients {
  return {
    agents: createClient(AgentService, transport),
    discovery: createClient(DiscoveryService, transport),
    tasks: createClient(TaskService, transport),
    workers: createClient(WorkerService, transport),
    contexts: createClient(ContextService, transport),
    artifacts: createClient(ArtifactService, transport),
    tokens: createClient(TokenService, transport),
    revocations: createClient(RevocationService, transport),
    contracts: createClient(ContractService, transport),
    verification: createClient(VerificationService, transport),
    attestations: createClient(AttestationService, transport),
  };
}

/**
 * Clients of the gateway at `url`, over the Connect protocol and HTTP/2.
 *
 * @param interceptors what every call passes, e.g. `holderInterceptor`
 */
export function connectTo(url: string, interceptors: Interceptor[] = []): DeputeClients {
  return clientsOver(createConnectTransport({ baseUrl: url, httpVersion: "2", interceptors }));
}
