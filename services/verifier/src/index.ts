import { createClient } from "@connectrpc/connect";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { OrganizationService } from "@depute/contracts/depute/registry/v1/organization_service_pb";
import { TrustService } from "@depute/contracts/depute/registry/v1/trust_service_pb";
import { WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { DelegationService } from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import { RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { SpendService } from "@depute/contracts/depute/tokens/v1/spend_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { AttestationService } from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { ContractService } from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import { LogService } from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { ResultService } from "@depute/contracts/depute/verifier/v1/result_service_pb";
import { ReviewService } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import { WitnessService } from "@depute/contracts/depute/verifier/v1/witness_service_pb";
import { servicesOf } from "@depute/core/services";
import { selfTest } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import { defineService, planRules, SharedWork } from "@depute/service";
import { openStore } from "@depute/store";
import { Checker } from "./checker/checker.ts";
import { createRegistry, loadChecks } from "./checker/more-checks.ts";
import { Completions } from "./completions.ts";
import { ContractBook } from "./contract-book.ts";
import { EvidenceFetcher } from "./evidence-fetcher.ts";
import { attestationService } from "./handlers/attestation-service.ts";
import { contractService } from "./handlers/contract-service.ts";
import { logService } from "./handlers/log-service.ts";
import { resultService } from "./handlers/result-service.ts";
import { reviewService } from "./handlers/review-service.ts";
import { verificationService } from "./handlers/verification-service.ts";
import { witnessService } from "./handlers/witness-service.ts";
import { JudgeClaims } from "./judge/claims.ts";
import { readJudges } from "./judge/config.ts";
import { Judge } from "./judge/judge.ts";
import { appendUnlogged } from "./log-backfill.ts";
import { openLogWitness } from "./log-witness.ts";
import { reviewTimes } from "./review-times.ts";
import { Reviews } from "./reviews.ts";
import { RevocationFollower } from "./revocation-follower.ts";
import { settings } from "./settings.ts";
import { migrations } from "./store/migrations.ts";
import { TransparencyLog } from "./transparency-log.ts";
import { TrustFeeder } from "./trust-feeder.ts";
import type { Verifier } from "./verifier.ts";
import { loadVerifierKey } from "./verifier-key.ts";
import { verifierMetrics } from "./verifier-metrics.ts";

export type { RegisterChecks } from "./checker/more-checks.ts";
export {
  type CheckFunction,
  CheckFunctionRegistry,
  createDefaultRegistry,
} from "./rules/check-registry.ts";

/** Maximum number of questions to models that wait in the queue. */
const MAX_WAITING_QUESTIONS = 1000;

const DESCRIPTORS = servicesOf("verifier");

/** The verifier service: contracts, verification of outputs, and attestations (DelegateOS 5 to 7, 10.3). */
export const verifier = defineService({
  name: "verifier",
  audit: {},
  stores: { verifier: migrations },
  settings,
  isReplicable: true,
  descriptors: DESCRIPTORS,
  async start(deps, values) {
    const { log, clock, timers } = deps;
    selfTest(nativeEngine);
    void planRules(DESCRIPTORS, timers);
    const keypair = await loadVerifierKey(nativeEngine, deps.keys, values.verifierKeyFile);
    const moreChecks = await loadChecks(values.verifierChecks);
    const onError = (err: unknown, message: string) => log.error({ err }, message);
    const judge = new Judge({
      judges: readJudges(values.verifierJudges, values.verifierOutboundHosts),
      timeoutMs: values.verifierJudgeTimeout,
      maxOpen: values.verifierJudgesAtOnce,
      maxWaiting: MAX_WAITING_QUESTIONS,
      timers,
      log,
    });
    const store = await openStore({
      ...deps.storeAt("verifier", { verifier: keypair.principal.id }),
      migrations,
      onError,
      timers,
    });
    const work = new SharedWork({ service: "verifier", store, bus: deps.bus, clock, timers, log });
    const transparency = new TransparencyLog(nativeEngine, keypair, clock);
    const witness = await openLogWitness({ deps, engine: nativeEngine, store, transparency });
    await appendUnlogged(store, transparency);
    const revocations = createClient(RevocationService, deps.connect("tokens"));
    const followed = { store, log: transparency, revocations, timers, logger: log };
    const follower = new RevocationFollower({ ...followed, lease: work.lease("revocations") });
    follower.start();
    const delegations = createClient(DelegationService, deps.connect("tokens"));
    const trust = new TrustFeeder({
      store,
      delegations,
      agents: createClient(AgentService, deps.connect("registry")),
      trust: createClient(TrustService, deps.connect("registry")),
      timers,
      logger: log,
      work,
    });
    trust.start();
    const completions = new Completions({
      ...{ store, transparency, delegations, timers, logger: log, lease: work.lease("completions") },
      tasks: createClient(WorkerService, deps.connect("tasks")),
    });
    completions.start();
    const checker = new Checker({
      size: values.verifierWorkers,
      jobLimitMs: values.verifierCheckTimeout,
      maxWaiting: values.verifierMaxWaitingChecks,
      memoryMb: values.verifierCheckMemoryMb,
      ...{ checks: values.verifierChecks, clock, timers, onError },
    });
    const evidence = new EvidenceFetcher({ hosts: values.verifierEvidenceHosts, timers, logger: log });
    const reviews = new Reviews(store, deps.bus, clock, nativeEngine);
    const times = reviewTimes({ reviews, clock, timers, log, lease: work.lease("review-times") });
    times.start();
    const state: Verifier = {
      store,
      contracts: new ContractBook(store, clock),
      checker,
      names: { checks: createRegistry(namesOnlyRegistry, moreChecks), hasJudge: (model) => judge.has(model) },
      countCheck: verifierMetrics(deps.domainMetrics, store),
      judge,
      judgeClaims: deps.isReplicated ? new JudgeClaims({ store, clock, timers, log }) : undefined,
      reviews,
      reviewers: values.verifierReviewers,
      reviewTimeoutMs: values.verifierReviewTimeout,
      bus: deps.bus,
      timers,
      stopping: deps.stopping,
      engine: nativeEngine,
      keypair,
      log: transparency,
      tokens: createClient(TokenService, deps.connect("tokens")),
      evidence,
      organizations: createClient(OrganizationService, deps.connect("registry")),
      spend: createClient(SpendService, deps.connect("tokens")),
      delegations,
      completions,
      trust,
      revocations,
      ...{ maxWitnessedPlatforms: values.verifierMaxWitnessedPlatforms, authority: deps.authority },
      clock,
      logger: log,
    };
    return {
      leases: () => work.held,
      routes(router) {
        router.service(ContractService, contractService(state));
        router.service(VerificationService, verificationService(state));
        router.service(AttestationService, attestationService(state));
        router.service(LogService, logService(state));
        router.service(ReviewService, reviewService(state));
        router.service(ResultService, resultService(state));
        router.service(WitnessService, witnessService(state));
      },
      async close() {
        await times.close();
        await follower.close();
        await trust.close();
        await completions.close();
        await checker.close();
        evidence.close();
        await work.close();
        await witness?.close();
        await store.close();
      },
    };
  },
});

/**
 * The engines of a registry that only has the checks' names and validates their parameters. Worker threads run the
 * checks.
 */
const namesOnlyRegistry = {
  matcher(): never {
    throw new Error("patterns run in the checker");
  },
  validator(): never {
    throw new Error("schemas run in the checker");
  },
};
