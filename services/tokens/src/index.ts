import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { ALL_KEYS } from "@depute/bus";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { AuditService } from "@depute/contracts/depute/tokens/v1/audit_service_pb";
import { DelegationService } from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import { HolderSessionService } from "@depute/contracts/depute/tokens/v1/holder_session_service_pb";
import { KeyService } from "@depute/contracts/depute/tokens/v1/key_service_pb";
import { RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { RootKeyService } from "@depute/contracts/depute/tokens/v1/root_key_service_pb";
import { SpendService } from "@depute/contracts/depute/tokens/v1/spend_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { formatTime } from "@depute/core";
import { servicesOf } from "@depute/core/services";
import {
  defineService,
  fingerprintOf,
  OpenParts,
  SealedSecrets,
  type ServiceDeps,
  type ServiceInstance,
  type Settings,
  SharedWork,
  type SubjectToken,
} from "@depute/service";
import { openStore } from "@depute/store";
import { AgentKeys } from "./agent-keys.ts";
import { AuditLog } from "./audit-log.ts";
import { AuditSealer } from "./audit-sealer.ts";
import { BlockNotes } from "./block-notes.ts";
import { Chains, ContractLineages } from "./chains.ts";
import { CheckpointFile } from "./checkpoint-file.ts";
import { DelegationLog } from "./delegation-log.ts";
import { openEngine } from "./engine.ts";
import { explainedServices } from "./explained-services.ts";
import { auditService } from "./handlers/audit-service.ts";
import { delegationService } from "./handlers/delegation-service.ts";
import { holderSessionService } from "./handlers/holder-session-service.ts";
import { keyService } from "./handlers/key-service.ts";
import { revocationService } from "./handlers/revocation-service.ts";
import { rootKeyService, successionOf } from "./handlers/root-key-service.ts";
import { spendService } from "./handlers/spend-service.ts";
import { tokenService } from "./handlers/token-service.ts";
import { HolderProofs } from "./holder-proofs.ts";
import { HolderSessions } from "./holder-sessions.ts";
import { Housekeeping } from "./housekeeping.ts";
import { JwtKeys } from "./jwt-keys.ts";
import { KeyRevoker } from "./key-revoker.ts";
import { KeyStore } from "./key-store.ts";
import { KnownKeys } from "./known-keys.ts";
import { PendingPool } from "./pending-pool.ts";
import { RevocationLog } from "./revocation-log.ts";
import { RevocationPeers } from "./revocation-peers.ts";
import { REVOCATIONS_TOPIC, RevocationReader } from "./revocation-reader.ts";
import { RevocationState } from "./revocation-state.ts";
import { revocationWitness } from "./revocation-witness.ts";
import { recordRoleDenial } from "./role-denials.ts";
import { assertRoots, openRootKey } from "./root-key.ts";
import { RootKeys } from "./root-keys.ts";
import { signFileCheckpoint, signPublicCheckpoint } from "./rules/checkpoint.ts";
import { MAX_OVERLAP_MS, ROOT_ROTATION } from "./rules/root-key.ts";
import { SeenProofs } from "./seen-proofs.ts";
import { assertSettings, tokensSettings } from "./settings.ts";
import { SharedNotes } from "./shared-notes.ts";
import { SharedProofs } from "./shared-proofs.ts";
import { SharedSessions } from "./shared-sessions.ts";
import { SpendLedger } from "./spend-ledger.ts";
import { migrations } from "./store/migrations.ts";
import { sealSome } from "./store/revocation-rows.ts";
import { tokenMetrics } from "./token-metrics.ts";
import { createIdentify, TokenVerifier } from "./token-verifier.ts";
import { UsedAssertions } from "./used-assertions.ts";

/**
 * Maximum number of log entries that one transaction adds to the hash chain when the service starts. Older versions
 * wrote log entries without a hash chain.
 */
const SEALED_AT_ONCE = 500;

/** The tokens service: mints, attenuates, verifies and revokes DelegateOS tokens. */
export const tokens = defineService({
  name: "tokens",
  settings: tokensSettings,
  isReplicable: true,
  descriptors: servicesOf("tokens"),
  stores: { tokens: migrations },
  start(deps, settings) {
    const parts = new OpenParts((err) => deps.log.error({ err }, "closing failed"));
    return parts.orClose(() => start(deps, settings, parts));
  },
});

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: composes the parts of the service, in the order in which they start
async function start(
  deps: ServiceDeps,
  settings: Settings<typeof tokensSettings>,
  parts: OpenParts,
): Promise<ServiceInstance> {
  const { log, clock, timers, bus, dataDir } = deps;
  assertSettings(settings);
  const engine = await openEngine(settings.tokenEngine);
  const root = await openRootKey(engine, { keys: deps.keys, configured: settings.rootKeyFile, log });
  parts.add(() => root.privateKey.fill(0));
  assertRoots(engine, settings.trustedRoots);
  const isProofRequired = settings.holderProof === "required";
  if (!isProofRequired) {
    log.warn(
      "tokens are accepted without a proof of their holder: any party that sees a token can use it, and a holder can " +
        "remove attenuations; set DEPUTE_HOLDER_PROOF=required",
    );
  }

  const master = deps.keys.openMaster();
  const store = await openStore({
    ...deps.storeAt("tokens", { root: root.principal.id, master: fingerprintOf(master) }),
    migrations,
    onError: (error, what) => log.error({ err: error }, what),
  });
  parts.add(() => store.close());
  const secrets = new SealedSecrets(master);
  const roots = new RootKeys({
    ...{ engine, store, clock, secrets, file: root, configured: settings.trustedRoots },
    // Other replicas read the root keys together with the revocations, so this topic wakes them.
    onChange: () => bus.publish(REVOCATIONS_TOPIC, ALL_KEYS),
  });
  await roots.start();
  parts.add(() => roots.close());
  const isShared = deps.isReplicated;
  const state = new RevocationState(settings.revocationMaxStaleness);
  const meter = tokenMetrics(deps.domainMetrics, { store, state, clock });
  const pollMs = settings.revocationPoll;
  const reader = new RevocationReader({
    ...{ engine, store, bus, clock, timers, log, state, roots, pollMs, isShared },
    onAdvance: () => {
      seenLog.note();
      witness?.note();
    },
  });
  const proofOptions = { store, clock, timers, log, max: settings.maxSeenProofs };
  const seenProofs = isShared
    ? new SharedProofs({ ...proofOptions, revocations: reader })
    : new SeenProofs(proofOptions);
  const notes = isShared ? new SharedNotes({ store, timers, revocations: reader }) : new BlockNotes(store);
  const work = new SharedWork({ service: "tokens", store, bus, clock, timers, log });
  parts.add(() => work.close());
  parts.add(() => reader.close());
  const lease = work.lease("background");
  const ownReader = isShared ? reader : undefined;
  const stated = () => {
    const { sequence, head } = state;
    return { sequence, head, signedAt: formatTime(clock.now()), rootChange: roots.change };
  };
  const sign = () => signPublicCheckpoint(engine, stated(), roots.current());
  const signFile = () => signFileCheckpoint(engine, stated(), root);
  const file = join(dataDir, "revocations.checkpoint");
  const look = () => reader.look();
  const signer = root.principal.id;
  const seenLog = new CheckpointFile({ file, engine, signer, timers, log, sign: signFile, look });
  const witness = revocationWitness({
    ...{ deps, engine, isSigner: (principal: string) => roots.isOwn(principal), store },
    successions: () => roots.keys.flatMap((key) => successionOf(key) ?? []),
    sign,
  });
  await notes.start();
  await seenProofs.start();
  parts.add(() => seenProofs.close());
  while (await store.write((tx) => sealSome(tx, engine, SEALED_AT_ONCE)));
  await seenLog.check(store);
  parts.add(() => seenLog.close());
  await reader.start();
  await witness?.check();
  parts.add(() => witness?.close());

  const sealer = new AuditSealer({
    ...{ engine, store, verifier: deps.connect("verifier"), clock, timers, log, lease },
  });
  const audit = new AuditLog({
    ...{ engine, store, bus, clock, timers, log },
    onDecision: meter.decided,
    onSealed: () => sealer.wake(),
  });
  parts.add(() => audit.close());
  const knownKeys = new KnownKeys({
    ...{ configured: new Set([...roots.everTrusted(), ...settings.minters]), log },
    hasCredential: (principal) => deps.hasCredential(principal),
    agents: createClient(AgentService, deps.connect("registry")),
  });
  const pool = new PendingPool({
    ...{ clock, max: settings.maxPendingRevocations },
    longestLifeMs: settings.tokenMaxLifetime + settings.clockSkew,
  });
  const saved = (sequence: number) => seenLog.saved(sequence);
  const delegations = new DelegationLog({
    ...{ engine, store, clock, timers, log, state, roots, lease, reader: ownReader },
  });
  parts.add(() => delegations.close());
  delegations.start();
  const revocations = new RevocationLog({
    ...{
      engine,
      // A retired root has a quota like any other key, so a thief of the root's key cannot fill the log.
      isRoot: (principal) => roots.isOwn(principal) && roots.retired(principal) === undefined,
      store,
      bus,
      clock,
      state,
      audit,
      delegations,
      knownKeys,
      pool,
      saved,
    },
    maxDaily: settings.maxDailyRevocations,
  });
  const keyRevoker = new KeyRevoker({
    ...{ engine, store, bus, clock, timers, log, roots, state, audit, revocations, delegations },
    ...{ knownKeys, pool, saved, lease },
  });
  parts.add(() => keyRevoker.close());
  keyRevoker.start();
  const jwtKeys = new JwtKeys({ store, clock, secrets, maxAgeMs: settings.jwtKeyMaxAge });
  const keys = new KeyStore({
    ...{ engine, store, clock, timers, log, audit, lease, maxAgeMs: settings.keyMaxAge },
    onAgentKey: () => agentKeys.wake(),
    secrets,
  });
  const agentKeys = new AgentKeys({
    ...{ store, clock, timers, log, keys, lease, registry: deps.connect("registry") },
    publicUrl: () => deps.publicUrl,
  });
  const peers = new RevocationPeers({
    ...{ engine, store, bus, timers, log, revocations, work, fetch: globalThis.fetch },
    peers: settings.revocationPeers,
    sources: settings.revocationSources,
    pollMs: settings.revocationSourcePoll,
  });
  parts.add(() => keys.close());
  await keys.start();
  parts.add(() => agentKeys.close());
  agentKeys.start();
  parts.add(() => peers.close());
  peers.start();
  const housekeeping = new Housekeeping({
    ...{ engine, store, clock, timers, log, state, keyRevoker, lease, reader: ownReader },
    auditRetentionMs: settings.auditRetention,
    delegationRetentionMs: settings.delegationRetention,
  });
  parts.add(() => housekeeping.close());
  housekeeping.start();
  parts.add(() => sealer.close());
  sealer.start();
  const unsubscribe = bus.subscribe(REVOCATIONS_TOPIC, () => {
    seenLog.note();
    witness?.note();
  });
  parts.add(unsubscribe);
  const spend = new SpendLedger({ store, clock, audit, notes, meter, reader: ownReader });
  const chains = new Chains({
    ...{
      engine,
      clock,
      roots,
      state,
      lineages: new ContractLineages(deps.connect("verifier")),
    },
    maxLifetimeMs: settings.tokenMaxLifetime,
    clockSkewMs: settings.clockSkew,
    catchUp: () => reader.catchUp(),
  });
  const sharedSessions = isShared ? new SharedSessions({ engine, store, secrets }) : undefined;
  const proofs = new HolderProofs({ engine, state, seenProofs, sharedSessions });
  const tokenVerifier = new TokenVerifier({
    timers,
    ...{ engine, clock, isProofRequired, chains, proofs, state, revocations, audit, notes },
    look,
    refresh: () => reader.refresh(),
  });
  const sessions = new HolderSessions({
    engine,
    clock,
    audit,
    chains,
    proofs,
    tokenVerifier,
    verifier: () => roots.current(),
  });
  const { id: principal } = roots.current().principal;
  log.info({ root: principal, roots: roots.trusted().size, engine: engine.name }, "the platform's root key");
  const context = {
    engine,
    store,
    bus,
    clock,
    timers,
    roots,
    savedRoot: (change: number) => seenLog.savedRoot(change),
    replicas: deps.replicas,
    rootOverlapMs: settings.rootKeyOverlap || Math.min(settings.tokenMaxLifetime, MAX_OVERLAP_MS),
    minters: new Set(settings.minters),
    spenders: new Set(settings.spenders),
    auditors: new Set(settings.auditors),
    spend,
    notes,
    revocationState: state,
    subjectOf: (subject: SubjectToken) => deps.subjectOf(subject),
    usedAssertions: new UsedAssertions({ engine, seenProofs, max: settings.maxSeenProofs }),
    jwtKeys,
    publicUrl: () => deps.publicUrl,
    explained: explainedServices((name) => deps.connect(name)),
    delegations,
    keyRevoker,
    keys,
    async checkpoint() {
      await reader.look();
      return sign();
    },
    tokenVerifier,
    chains,
    sessions,
    revocations,
    audit,
    revocationPollMs: pollMs,
    minLifetimeMs: settings.tokenMinLifetime,
    maxLifetimeMs: settings.tokenMaxLifetime,
    identify: createIdentify(tokenVerifier),
  };
  return {
    leases: () => work.held,
    features: [ROOT_ROTATION],
    routes: (router) => {
      router.service(TokenService, tokenService(context));
      router.service(RevocationService, revocationService(context));
      router.service(SpendService, spendService(context));
      router.service(DelegationService, delegationService(context));
      router.service(KeyService, keyService(context));
      router.service(RootKeyService, rootKeyService(context));
      router.service(HolderSessionService, holderSessionService(context));
      router.service(AuditService, auditService(context));
    },
    rolesBySettings: (principal) => [
      ...(context.minters.has(principal) ? (["minter"] as const) : []),
      ...(context.auditors.has(principal) ? (["auditor"] as const) : []),
    ],
    onRoleDenied: (denied) => recordRoleDenial(audit, denied),
    close: () => parts.close(),
  };
}
