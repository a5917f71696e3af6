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
import type { Judge } from "./judge/judge.ts";
import type { Reviews } from "./reviews.ts";
import type { Known } from "./rules/spec-validation.ts";
import type { TransparencyLog } from "./transparency-log.ts";
import type { TrustFeeder } from "./trust-feeder.ts";

/** What the handlers work with. */
export interface Verifier {
  readonly store: Store;
  readonly contracts: ContractBook;
  readonly checker: Checker;
  /** What contracts may name. */
  readonly names: Known;
  readonly engine: CryptoEngine;
  /** The verifier's own, for what it signs. */
  readonly keypair: Keypair;
  /** Has a leaf for everything that the verifier vouches for. */
  readonly log: TransparencyLog;
  /** Asks models. */
  readonly judge: Judge;
  /** Asks people. */
  readonly reviews: Reviews;
  /** Principals who may decide every human_review, besides the contract's issuer. */
  readonly reviewers: readonly string[];
  /** How long human_review waits unless the contract says, in milliseconds. */
  readonly reviewTimeoutMs: number;
  /** Reads evidence that lies elsewhere, where that is allowed. */
  readonly evidence: Pick<EvidenceFetcher, "digests">;
  /** Says who belongs to whom. */
  readonly organizations: Pick<Client<typeof OrganizationService>, "batchGetAffiliations">;
  /** Tells the registry what came of work. */
  readonly trust: Pick<TrustFeeder, "wake">;
  readonly bus: Bus;
  readonly timers: Timers;
  /** Aborts when the process begins to drain. */
  readonly stopping: AbortSignal;
  readonly tokens: Client<typeof TokenService>;
  /** Where judging is charged. */
  readonly spend: Client<typeof SpendService>;
  readonly delegations: Client<typeof DelegationService>;
  /** Ends delegations by attestations. */
  readonly completions: Pick<Completions, "complete">;
  readonly revocations: Client<typeof RevocationService>;
  readonly authority: Authority;
  readonly clock: Clock;
  readonly logger: Logger;
}
