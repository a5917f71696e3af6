import type { DescService } from "@bufbuild/protobuf";
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
import type { ServiceName } from "@depute/service";

/** The RPC services that the gateway serves by forwarding, and whose they are. */
export const FORWARDED: Readonly<Record<ServiceName, readonly DescService[]>> = {
  registry: [
    AgentService,
    AuthorityService,
    DiscoveryService,
    OrganizationService,
    PolicyService,
    OfferService,
    TrustService,
  ],
  tasks: [
    TaskService,
    WorkerService,
    ContextService,
    ArtifactService,
    AspSessionService,
    MessageService,
    ExecutionService,
  ],
  tokens: [TokenService, RevocationService, SpendService, DelegationService, KeyService, SessionService],
  verifier: [
    ContractService,
    VerificationService,
    AttestationService,
    LogService,
    ReviewService,
    ResultService,
  ],
};
