import type { Client } from "@connectrpc/connect";
import type { Bus } from "@depute/bus";
import type { OrganizationService } from "@depute/contracts/depute/registry/v1/organization_service_pb";
import type { DelegationService } from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import type { RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import type { SpendService } from "@depute/contracts/depute/tokens/v1/spend_service_pb";
import type { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import type { Clock, Timers } from "@depute/core";
import type { CryptoEngine, Keypair } from "@depute/dct";
import type { Authority, Logger } from "@depute/service";
import type { Store } from "@depute/store";
import type { Checker } from "./checker/checker.ts";
import type { Completions } from "./completions.ts";
import type { ContractBook } from "./contract-book.ts";
import type { EvidenceFetcher } from "./evidence-fetcher.ts";
import type { JudgeClaims } from "./judge/claims.ts";
import type { Judge } from "./judge/judge.ts";
import type { Reviews } from "./reviews.ts";
import type { ContractNames } from "./rules/spec-validation.ts";
import type { TransparencyLog } from "./transparency-log.ts";
import type { TrustFeeder } from "./trust-feeder.ts";
import type { CountCheck } from "./verifier-metrics.ts";

/** The dependencies that all handlers of the verifier share. */
export interface Verifier {
  readonly store: Store;
  readonly contracts: ContractBook;
  readonly checker: Checker;
  /** The names of checks and models that contracts may use. */
  readonly names: ContractNames;
  readonly engine: CryptoEngine;
  /** The verifier's keypair, which signs the service's statements. */
  readonly keypair: Keypair;
  /** The transparency log of attestations, verification results, revocations, session heads and audit seals. */
  readonly log: TransparencyLog;
  /** Counts the verdict on an output. */
  readonly countCheck: CountCheck;
  /** Runs the models that score outputs. */
  readonly judge: Judge;
  /** The claims by which only one replica at a time runs a judge for an output; undefined without replicas. */
  readonly judgeClaims: JudgeClaims | undefined;
  /** The queue of reviews. */
  readonly reviews: Reviews;
  /** Principals, besides the contract's issuer, that may decide every human_review. */
  readonly reviewers: readonly string[];
  /** Default time for the decision of a human_review, in milliseconds. */
  readonly reviewTimeoutMs: number;
  /** Fetches evidence from the hosts that the settings allow. */
  readonly evidence: Pick<EvidenceFetcher, "digests">;
  /** Finds the principals of agents, and the organizations of these principals. */
  readonly organizations: Pick<Client<typeof OrganizationService>, "batchGetAffiliations">;
  /** Reports outcomes to the registry as evidence of trust. */
  readonly trust: Pick<TrustFeeder, "wake">;
  readonly bus: Bus;
  readonly timers: Timers;
  /** Aborts when the process begins to drain. */
  readonly stopping: AbortSignal;
  readonly tokens: Client<typeof TokenService>;
  /** The client that reserves and charges the cost of judges. */
  readonly spend: Client<typeof SpendService>;
  readonly delegations: Client<typeof DelegationService>;
  /** Ends delegations when their delegatees attest completion. */
  readonly completions: Pick<Completions, "complete">;
  readonly revocations: Client<typeof RevocationService>;
  /** Maximum number of platforms for which the store keeps the heads of their logs. */
  readonly maxWitnessedPlatforms: number;
  readonly authority: Authority;
  readonly clock: Clock;
  readonly logger: Logger;
}
