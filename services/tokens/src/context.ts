import type { HandlerContext } from "@connectrpc/connect";
import type { Bus } from "@depute/bus";
import { type Clock, DeputeError, ErrorReason, type Timers } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import {
  hasRole,
  type Identity,
  type ProvenSubject,
  type ServiceDeps,
  type SubjectToken,
} from "@depute/service";
import type { Store } from "@depute/store";
import type { AuditLog } from "./audit-log.ts";
import type { BlockRecords } from "./block-notes.ts";
import type { Chains } from "./chains.ts";
import type { DelegationLog } from "./delegation-log.ts";
import type { ExplainedServices } from "./explained-services.ts";
import type { HolderSessions } from "./holder-sessions.ts";
import type { JwtKeys } from "./jwt-keys.ts";
import type { KeyRevoker } from "./key-revoker.ts";
import type { KeyStore } from "./key-store.ts";
import type { RevocationLog } from "./revocation-log.ts";
import type { RevocationState } from "./revocation-state.ts";
import type { RootKeys } from "./root-keys.ts";
import type { PublicCheckpoint } from "./rules/checkpoint.ts";
import type { SpendLedger } from "./spend-ledger.ts";
import type { TokenVerifier } from "./token-verifier.ts";
import type { UsedAssertions } from "./used-assertions.ts";

/** The dependencies and settings of the handlers. */
export interface TokensContext {
  readonly engine: CryptoEngine;
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly timers: Timers;
  /** The platform's root keys. */
  readonly roots: RootKeys;
  /** Resolves when the checkpoint file durably covers a change of a root key. */
  savedRoot(change: number): Promise<void>;
  /** The replicas of all services. */
  readonly replicas: ServiceDeps["replicas"];
  /** Milliseconds for which an earlier root key stays accepted after a rotation, unless the request says otherwise. */
  readonly rootOverlapMs: number;
  readonly minters: ReadonlySet<string>;
  /** Principals that may reserve spend under the tokens of other principals, and read that spend. */
  readonly spenders: ReadonlySet<string>;
  /** Principals that may read the audit log. */
  readonly auditors: ReadonlySet<string>;
  /** The revocations that this process has read. */
  readonly revocationState: RevocationState;
  /** The clients of the services whose records an explanation of authority needs. */
  readonly explained: ExplainedServices;
  /** Verifies the issuer's JWT in a token exchange; see `ServiceDeps.subjectOf`. */
  subjectOf(subject: SubjectToken): Promise<ProvenSubject>;
  /** The identity assertions that callers have exchanged. */
  readonly usedAssertions: UsedAssertions;
  /** The keys that sign projections. */
  readonly jwtKeys: JwtKeys;
  /** The platform's URL for clients, without a trailing slash. */
  publicUrl(): string;
  readonly tokenVerifier: TokenVerifier;
  readonly chains: Chains;
  readonly sessions: HolderSessions;
  readonly revocations: RevocationLog;
  readonly keyRevoker: KeyRevoker;
  readonly keys: KeyStore;
  /** Returns the current state of the revocation log, signed by the platform's root. */
  checkpoint(): Promise<Required<PublicCheckpoint>>;
  readonly audit: AuditLog;
  readonly spend: SpendLedger;
  readonly notes: BlockRecords;
  readonly delegations: DelegationLog;
  readonly revocationPollMs: number;
  /** Minimum and maximum lifetime of a minted token, in milliseconds. */
  readonly minLifetimeMs: number;
  readonly maxLifetimeMs: number;
  /**
   * Identifies the caller without a network call. All other services call this service to identify a caller.
   *
   * @throws DeputeError UNAUTHENTICATED, TOKEN_DENIED, CALLER_NOT_ALLOWED, LIMIT_EXCEEDED, SHUTTING_DOWN
   */
  identify(context: HandlerContext): Promise<Identity>;
}

/**
 * Refuses a caller that may not use the platform's root key to mint or to revoke, and records the refusal.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED; LIMIT_EXCEEDED if the audit log has no room
 */
export function assertMinter(
  { minters, audit }: TokensContext,
  identity: Identity,
  kind: "mint" | "revoke",
  blocks: readonly string[] = [],
): void {
  const { principal, local } = identity;
  if (local || hasRole(identity, "minter") || minters.has(principal)) return;
  if (kind === "revoke" && hasRole(identity, "operator")) return;
  const reason = "caller_not_allowed";
  audit.assertRoom();
  audit.add({ kind, caller: principal, principal: "", decision: "denied", reason, blocks });
  throw new DeputeError(
    ErrorReason.CALLER_NOT_ALLOWED,
    "the caller may not use the platform's root key; use the credentials of a minter",
  );
}

/**
 * Whether a caller may read the whole audit log: as `local`, by the role auditor or operator, or because the setting
 * `auditors` names its principal.
 */
export function isAuditor({ auditors }: Pick<TokensContext, "auditors">, identity: Identity): boolean {
  const { principal, local } = identity;
  return local || hasRole(identity, "auditor") || hasRole(identity, "operator") || auditors.has(principal);
}
