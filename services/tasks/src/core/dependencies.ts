import { type Client, createClient } from "@connectrpc/connect";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { DiscoveryService } from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { PolicyService } from "@depute/contracts/depute/registry/v1/policy_service_pb";
import { DelegationService } from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import { RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { AttestationService } from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { ContractService } from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import type { ServiceDeps } from "@depute/service";

/** The services that the task engine calls. */
export interface Dependencies {
  readonly agents: Client<typeof AgentService>;
  readonly discovery: Client<typeof DiscoveryService>;
  readonly policy: Client<typeof PolicyService>;
  readonly tokens: Client<typeof TokenService>;
  readonly delegations: Client<typeof DelegationService>;
  readonly revocations: Client<typeof RevocationService>;
  readonly attestations: Client<typeof AttestationService>;
  readonly contracts: Client<typeof ContractService>;
  readonly verification: Client<typeof VerificationService>;
}

export function connectDependencies({ connect }: Pick<ServiceDeps, "connect">): Dependencies {
  const [registry, tokens, verifier] = [connect("registry"), connect("tokens"), connect("verifier")];
  return {
    agents: createClient(AgentService, registry),
    discovery: createClient(DiscoveryService, registry),
    policy: createClient(PolicyService, registry),
    tokens: createClient(TokenService, tokens),
    delegations: createClient(DelegationService, tokens),
    revocations: createClient(RevocationService, tokens),
    attestations: createClient(AttestationService, verifier),
    contracts: createClient(ContractService, verifier),
    verification: createClient(VerificationService, verifier),
  };
}
