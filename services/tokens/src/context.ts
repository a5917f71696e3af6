import type { HandlerContext } from "@connectrpc/connect";
import type { Bus } from "@depute/bus";
import { type Clock, DeputeError, ErrorReason, type Timers } from "@depute/core";
import type { CryptoEngine, Keypair } from "@depute/dct";
import type { Identity } from "@depute/service";
import type { Store } from "@depute/store";
import type { AuditLog } from "./audit-log.ts";
import type { BlockNotes } from "./block-notes.ts";
import type { Chains } from "./chains.ts";
import type { DelegationLog } from "./delegation-log.ts";
import type { Judge } from "./judge.ts";
import type { KeyRevoker } from "./key-revoker.ts";
import type { KeyStore } from "./key-store.ts";
import type { RevocationLog } from "./revocation-log.ts";
import type { Checkpoint } from "./rules/checkpoint.ts";
import type { SessionDesk } from "./session-desk.ts";
import type { SpendLedger } from "./spend-ledger.ts";

/** What the handlers work with. */
export interface TokensContext {
  readonly engine: CryptoEngine;
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly timers: Timers;
  /** The platform's root. */
  readonly root: Keypair;
  readonly trustedRoots: ReadonlySet<string>;
  readonly minters: ReadonlySet<string>;
  /** Principals that may reserve and look at what is spent under others' tokens. */
  readonly spenders: ReadonlySet<string>;
  readonly judge: Judge;
  readonly chains: Chains;
  readonly sessions: SessionDesk;
  readonly revocations: RevocationLog;
  readonly keyRevoker: KeyRevoker;
  readonly keys: KeyStore;
  /** The present state of the revocation log, signed. */
  checkpoint(): Promise<Checkpoint>;
  readonly audit: AuditLog;
  readonly spend: SpendLedger;
  readonly notes: BlockNotes;
  readonly delegations: DelegationLog;
  readonly revocationPollMs: number;
  /** Shortest and longest life of a token that is minted, in milliseconds. */
  readonly minLifetimeMs: number;
  readonly maxLifetimeMs: number;
  /**
   * Who calls, decided here: the interface that other services have would ask this service over the network.
   *
   * @throws DeputeError UNAUTHENTICATED, TOKEN_DENIED
   */
  identify(context: HandlerContext): Promise<Identity>;
}

/**
 * Refuses who may not use the platform's key, and records that.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED
 */
export function assertMinter(
  { minters, audit }: TokensContext,
  { principal, local }: Identity,
  kind: "mint" | "revoke",
  blocks: readonly string[] = [],
): void {
  if (local || minters.has(principal)) return;
  const reason = "caller_not_allowed";
  audit.assertRoom();
  audit.add({ kind, caller: principal, principal: "", decision: "denied", reason, blocks });
  throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "the caller may not use the platform's root key");
}
