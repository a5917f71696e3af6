import { create } from "@bufbuild/protobuf";
import { createRouterTransport, type Transport } from "@connectrpc/connect";
import { type Bus, InProcessBus } from "@depute/bus";
import { SerializedDCTSchema } from "@depute/contracts/delegateos/v0/token_pb";
import {
  type VerifyTokenRequest,
  VerifyTokenRequestSchema,
} from "@depute/contracts/depute/tokens/v1/token_service_pb";
import type { ManualClock } from "@depute/core";
import {
  CLOCK_SKEW_MS,
  createProof,
  createToken,
  type Keypair,
  MAX_LIFETIME_MS,
  type SerializedDCT,
  serialiseToken,
} from "@depute/dct";
import { createLogger } from "@depute/service";
import { openStore, type Store } from "@depute/store";
import { AuditLog } from "../audit-log.ts";
import { BlockNotes } from "../block-notes.ts";
import { Chains, ContractLineages } from "../chains.ts";
import { DelegationLog } from "../delegation-log.ts";
import { HolderProofs } from "../holder-proofs.ts";
import { PendingPool } from "../pending-pool.ts";
import { RevocationLog } from "../revocation-log.ts";
import { RevocationReader } from "../revocation-reader.ts";
import { RevocationState } from "../revocation-state.ts";
import { SeenProofs } from "../seen-proofs.ts";
import { SharedNotes } from "../shared-notes.ts";
import { SharedProofs } from "../shared-proofs.ts";
import { SpendLedger } from "../spend-ledger.ts";
import { isKnownPrincipal } from "../store/block-rows.ts";
import { migrations } from "../store/migrations.ts";
import { TokenVerifier } from "../token-verifier.ts";
import { alice, CALL, CONTRACT, engine, id, otherRoot, READ, readFile } from "./holders.ts";

/** A transport on which every call fails, because it has no services. */
const noServices = createRouterTransport(() => {});

export const silent = createLogger({ level: "silent", name: "test" });
export const MAX_STALENESS_MS = 150_000;
export const POLL_MS = 5_000;

export function openMemory(): Promise<Store> {
  return openStore({ memory: true, migrations, onError: fail });
}

export function openBus(): Bus {
  return new InProcessBus({ onError: fail });
}

/**
 * Creates one replica of this service on a shared store and bus. The replica trusts `otherRoot`. `logStore`, if given,
 * is the store of the revocation log.
 */
export function createReplica(shared: {
  store: Store;
  bus: Bus;
  clock: ManualClock;
  seenProofs?: SeenProofs;
  logStore?: Store;
  verifier?: Transport;
  /** Whether this replica shares the store with other replicas. Default: false. */
  isShared?: boolean;
}) {
  const { store, bus, clock, isShared = false } = shared;
  const timers = clock;
  const state = new RevocationState(MAX_STALENESS_MS);
  const reader = new RevocationReader({
    ...{ engine, store: shared.logStore ?? store, bus, clock, timers, log: silent, state, pollMs: POLL_MS },
    roots: { change: 0, readChanged: async () => undefined, apply: () => false },
    isShared,
  });
  const ownReader = isShared ? reader : undefined;
  const audit = new AuditLog({ engine, store, bus, clock, timers, log: silent });
  const delegations = new DelegationLog({
    roots: { retiredIn: async () => undefined },
    engine,
    store,
    clock,
    timers,
    log: silent,
    state,
    reader: ownReader,
  });
  const pool = new PendingPool({ clock, max: 1000, longestLifeMs: MAX_LIFETIME_MS + CLOCK_SKEW_MS });
  const knownKeys = { isRecorded: isKnownPrincipal, isNamed: async () => false };
  const revocations = new RevocationLog({
    ...{ engine, isRoot: () => false, store, bus, clock, state, audit, delegations, maxDaily: 1000 },
    ...{ knownKeys, pool, saved: async () => {} },
  });
  const proofOptions = { store, clock, timers, log: silent, max: 100_000 };
  const sharedProofs = isShared ? new SharedProofs({ ...proofOptions, revocations: reader }) : undefined;
  const seenProofs = sharedProofs ?? shared.seenProofs ?? withInitialLoad(new SeenProofs(proofOptions));
  const notes = isShared ? new SharedNotes({ store, timers, revocations: reader }) : new BlockNotes(store);
  const spend = new SpendLedger({ store, clock, audit, notes, reader: ownReader });
  const trustedRoots = new Set([id(otherRoot)]);
  const chains = new Chains({
    ...{ engine, clock, state, maxLifetimeMs: MAX_LIFETIME_MS, clockSkewMs: CLOCK_SKEW_MS },
    roots: { trusted: () => trustedRoots, everTrusted: () => trustedRoots, retired: () => undefined },
    lineages: new ContractLineages(shared.verifier ?? noServices),
    catchUp: () => reader.catchUp(),
  });
  const proofs = new HolderProofs({ engine, state, seenProofs });
  const tokenVerifier = new TokenVerifier({
    timers,
    ...{ engine, clock, isProofRequired: true, chains, proofs, state, revocations, audit, notes },
    look: () => reader.look(),
    refresh: () => reader.refresh(),
  });
  return { state, reader, audit, revocations, tokenVerifier, chains, spend, notes, delegations, seenProofs };
}

/** Wraps the used proofs. Before its first operation, the wrapper loads the proofs from the store. */
function withInitialLoad(seen: SeenProofs): SeenProofs {
  let loaded: Promise<void> | undefined;
  const use: SeenProofs["use"] = async (...proof) => {
    loaded ??= seen.load();
    await loaded;
    return seen.use(...proof);
  };
  return Object.assign(Object.create(seen) as SeenProofs, { use });
}

/** Returns a token of `otherRoot` for alice. */
export function rootToken(clock: ManualClock): SerializedDCT {
  const grant = { delegatee: id(alice), capabilities: [READ], contractId: CONTRACT };
  const limits = { maxBudgetMicrocents: 1000, maxChainDepth: 5 };
  return serialiseToken(createToken(engine, { ...grant, ...limits }, otherRoot, { now: clock.now() }));
}

/** Returns a holder's request with a token and a proof. */
export function presented(clock: ManualClock, token: SerializedDCT, holder: Keypair): VerifyTokenRequest {
  const jwt = createProof(engine, holder, { ...CALL, token: token.token, now: clock.now() });
  return create(VerifyTokenRequestSchema, {
    token: create(SerializedDCTSchema, token),
    proof: { jwt, method: CALL.htm, target: CALL.htu },
    requested: readFile(),
  });
}

function fail(error: unknown): never {
  throw error;
}
