import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { AuthorityService } from "@depute/contracts/depute/registry/v1/authority_service_pb";
import { ClusterService } from "@depute/contracts/depute/registry/v1/cluster_service_pb";
import { DiscoveryService } from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { OfferService } from "@depute/contracts/depute/registry/v1/offer_service_pb";
import { OrganizationService } from "@depute/contracts/depute/registry/v1/organization_service_pb";
import { PolicyService } from "@depute/contracts/depute/registry/v1/policy_service_pb";
import { ProposalService } from "@depute/contracts/depute/registry/v1/proposal_service_pb";
import { TrustService } from "@depute/contracts/depute/registry/v1/trust_service_pb";
import { servicesOf } from "@depute/core/services";
import {
  AllowedHosts,
  BOUNDS_OPERATORS,
  BoundsOperators,
  defineService,
  defineSettings,
  LOCAL_PRINCIPAL,
  Outbound,
  SettingsError,
  SharedWork,
  WEBHOOK_HOSTS,
} from "@depute/service";
import { openStore, ReadCache } from "@depute/store";
import { Authorities } from "./authorities.ts";
import { PLACEHOLDER, PublishedKeys } from "./authority-keys.ts";
import { openCardKey } from "./card-key.ts";
import type { RegistryContext } from "./context.ts";
import { agentService } from "./handlers/agent-service.ts";
import { authorityService } from "./handlers/authority-service.ts";
import { clusterService } from "./handlers/cluster-service.ts";
import { discoveryService } from "./handlers/discovery-service.ts";
import { offerService } from "./handlers/offer-service.ts";
import { organizationService } from "./handlers/organization-service.ts";
import { policyService } from "./handlers/policy-service.ts";
import { proposalService } from "./handlers/proposal-service.ts";
import { trustService } from "./handlers/trust-service.ts";
import { MARK_INTERVAL_MS, startLeaseWatch } from "./lease-watch.ts";
import { ProposalReviews } from "./proposal-reviews.ts";
import { RemovalGuard } from "./removal-guard.ts";
import { originOf } from "./rules/endpoints.ts";
import { Predicates } from "./rules/predicate.ts";
import { HASH_LENGTHS } from "./rules/version-hash.ts";
import { createSchemaChecker } from "./schema-checker.ts";
import { SignedCards } from "./signed-cards.ts";
import { migrations } from "./store/migrations.ts";
import { readLastUp } from "./store/registry-state.ts";

/** Size of the database's page cache in MiB: enough for the frequently used rows of about 100,000 agents. */
const READ_CACHE_MIB = 64;

/** Maximum number of agents in the cache. Each takes some kilobytes, or up to 70 kilobytes with a large manifest. */
const RECENT_AGENTS = 256;

/** The registry service: agents, their capabilities and their liveness. */
export const registry = defineService({
  name: "registry",
  audit: { quiet: [AgentService.method.heartbeatAgent] },
  stores: { registry: migrations },
  settings: defineSettings({
    versionHashLength: {
      type: "string",
      choices: HASH_LENGTHS,
      default: "8",
      help: "digits of the version hashes in lists of capabilities",
      group: "Registry",
    },
    agentChangesKept: {
      type: "int",
      min: 1,
      max: 100_000_000,
      default: 100_000,
      help: "entries of the log of agent changes that are kept for watchers",
      group: "Registry",
    },
    orchestratorMayDelegate: {
      type: "bool",
      default: true,
      help: "whether CAP's `orchestrator` may delegate to every agent",
      group: "Registry",
    },
    orchestratorPrincipals: {
      type: "list",
      default: [],
      help: "principals that act as CAP's `orchestrator`",
      group: "Registry",
    },
    boundsOperators: BOUNDS_OPERATORS,
    a2aWebhookHosts: WEBHOOK_HOSTS,
    agentEndpointOrigins: {
      type: "list",
      default: [],
      help: "permitted origins of agents' registered addresses, like https://agents.example; none permits every origin",
      group: "Registry",
    },
    trustLevels: {
      type: "list",
      default: ["25", "50", "75", "90"],
      help: "scores at which the trust levels 1 to 4 begin, ascending",
      group: "Registry",
    },
    trustOperators: {
      type: "list",
      default: [],
      help: "Ed25519 public keys in base64url: operators, whose signed trust imports count and who may prove organizations. Without any, the caller without credentials on an open loopback proves organizations; where credentials are required, no principal does",
      group: "Registry",
    },
    aspAuthorities: {
      type: "string",
      choices: ["first", "granted"],
      default: "first",
      help: "the holder of an authority of agent URIs (example.com in agent://example.com/desk/name) without a grant: `first` is the first principal that registers an agent below it, `granted` is none",
      group: "Registry",
    },
    aspAuthorityOperators: {
      type: "list",
      default: [],
      help: "principals that grant authorities of agent URIs",
      group: "Registry",
    },
    aspAuthorityHosts: {
      type: "list",
      default: [],
      help: "hosts that the registry asks for an authority's keys, as host or host:port, with the prefix private: where the address may be private; their published keys hold these authorities; none disables the requests",
      group: "Registry",
    },
    aspAuthorityKeys: {
      type: "string",
      default: `https://${PLACEHOLDER}/.well-known/asp-keys.json`,
      help: "the address of an authority's keys, a JSON Web Key Set (RFC 7517)",
      group: "Registry",
    },
    proposalTimeout: {
      type: "duration",
      default: "168h",
      help: "how long a proposal of a grant waits for a decision; then it expires",
      group: "Registry",
    },
    registrationProof: {
      type: "string",
      choices: ["open", "required"],
      default: "open",
      help: "`required`: a caller without credentials, too, must send a statement signed by the agent's key",
      group: "Registry",
    },
  }),
  isReplicable: true,
  descriptors: servicesOf("registry"),
  async start(deps, settings) {
    const { log, clock, bus, authority } = deps;
    const cardKey = await openCardKey(deps.keys);
    const store = await openStore({
      ...deps.storeAt("registry", { card: cardKey.publicKey }),
      readCacheMib: READ_CACHE_MIB,
      migrations,
      onError: (error, message) => log.error({ err: error }, message),
    });
    const boundsOperators = new BoundsOperators(settings.boundsOperators, deps.auth);
    boundsOperators.announce(log);
    const localProves = settings.trustOperators.length === 0 && deps.auth === "open";
    if (localProves)
      log.info("DEPUTE_TRUST_OPERATORS is empty: callers without credentials may prove organizations");
    else if (settings.trustOperators.length === 0) {
      log.warn(
        "DEPUTE_TRUST_OPERATORS is empty: only callers with the role operator may prove organizations",
      );
    }
    const lastUp = await store.read(readLastUp);
    // If another replica wrote `lastUp` recently, agents could extend their leases there while this process was down.
    // So this process then grants no extra time to reconnect.
    const hasPeer = deps.isReplicated && lastUp !== undefined && clock.now() - lastUp <= 2 * MARK_INTERVAL_MS;
    const hosts = readHosts(settings.aspAuthorityHosts);
    const outbound = new Outbound({ hosts });
    const context: RegistryContext = {
      store,
      authorities: new Authorities({
        store,
        clock,
        policy: settings.aspAuthorities === "granted" ? "granted" : "first",
        operators: settings.aspAuthorityOperators,
        keys: new PublishedKeys({ hosts, outbound, address: readAddress(settings.aspAuthorityKeys) }),
      }),
      recent: new ReadCache(deps.isReplicated ? 0 : RECENT_AGENTS),
      predicates: new Predicates(),
      bus,
      clock,
      authority,
      schemas: createSchemaChecker(deps.connect("verifier")),
      guard: new RemovalGuard(clock, hasPeer ? undefined : lastUp),
      timers: deps.timers,
      stopping: deps.stopping,
      changesKept: settings.agentChangesKept,
      hashLength: Number(settings.versionHashLength),
      needsCredentials: deps.auth !== "open",
      callsWebhooks: settings.a2aWebhookHosts.length > 0,
      // This member is a getter, because the URL is known only after the server listens.
      get publicUrl() {
        return deps.publicUrl;
      },
      proofRequired: settings.registrationProof === "required",
      orchestratorMay: settings.orchestratorMayDelegate,
      endpointOrigins: readOrigins(settings.agentEndpointOrigins),
      cardKey,
      signedCards: new SignedCards(cardKey),
      boundsOperators,
      trustOperators: settings.trustOperators,
      localProves,
      trustLevels: readLevels(settings.trustLevels),
      orchestrators: settings.orchestratorPrincipals,
      proposals: {
        timeoutMs: readTimeout(settings.proposalTimeout),
        grantors: {
          organization: localProves ? [LOCAL_PRINCIPAL] : settings.trustOperators,
          authority: settings.aspAuthorityOperators,
          manifest: boundsOperators.ownersMay ? [LOCAL_PRINCIPAL] : boundsOperators.named,
        },
        wake: () => reviews.wake(),
      },
    };
    const work = new SharedWork({ service: "registry", store, bus, clock, timers: deps.timers, log });
    const reviews = new ProposalReviews(deps, context, work);
    reviews.start();
    const operators = new Set([
      ...settings.trustOperators,
      ...settings.boundsOperators,
      ...settings.aspAuthorityOperators,
    ]);
    const leases = startLeaseWatch(context, log);
    return {
      leases: () => work.held,
      routes: (router) => {
        router.service(AgentService, agentService(context));
        router.service(AuthorityService, authorityService(context));
        router.service(ClusterService, clusterService(deps));
        router.service(DiscoveryService, discoveryService(context));
        router.service(OrganizationService, organizationService(context));
        router.service(ProposalService, proposalService(context));
        router.service(TrustService, trustService(context));
        router.service(PolicyService, policyService(context));
        router.service(OfferService, offerService(context));
      },
      rolesBySettings: (principal) => (operators.has(principal) ? ["operator"] : []),
      async close() {
        try {
          await reviews.close();
          await work.close();
          await leases.stop();
        } finally {
          outbound.close();
          await store.close();
        }
      },
    };
  },
});

/**
 * Parses the thresholds of the trust levels.
 *
 * @throws SettingsError unless the texts are four ascending numbers, above 0 and at most 100
 */
function readLevels(texts: readonly string[]): number[] {
  const levels = texts.map(Number);
  const ascend = levels.every((level, i) => level > (levels[i - 1] ?? 0) && level <= 100);
  if (levels.length === 4 && ascend) return levels;
  throw new SettingsError("DEPUTE_TRUST_LEVELS: set four ascending scores, for example 25,50,75,90");
}

/** The minimum and maximum timeout of a proposal, in milliseconds. */
const TIMEOUT_RANGE = [1_000, 365 * 86_400_000] as const;

/**
 * Requires a timeout that a review can have.
 *
 * @throws SettingsError
 */
function readTimeout(ms: number): number {
  const [min, max] = TIMEOUT_RANGE;
  if (ms >= min && ms <= max) return ms;
  throw new SettingsError("DEPUTE_PROPOSAL_TIMEOUT: set a duration from 1s to 8760h");
}

/**
 * Parses the hosts of authorities.
 *
 * @throws SettingsError for a malformed host
 */
function readHosts(texts: readonly string[]): AllowedHosts {
  try {
    return new AllowedHosts(texts);
  } catch (cause) {
    throw new SettingsError(`DEPUTE_ASP_AUTHORITY_HOSTS: ${(cause as Error).message}`, { cause });
  }
}

/**
 * Requires a valid URL with the placeholder.
 *
 * @throws SettingsError
 */
function readAddress(text: string): string {
  const sample = text.replaceAll(PLACEHOLDER, "a.example");
  if (text.includes(PLACEHOLDER) && /^https?:/.test(text) && URL.canParse(sample)) return text;
  throw new SettingsError(
    `DEPUTE_ASP_AUTHORITY_KEYS: set an http or https address with ${PLACEHOLDER} in it`,
  );
}

/**
 * Parses the origins of registered URLs.
 *
 * @throws SettingsError for a malformed origin
 */
function readOrigins(texts: readonly string[]): string[] {
  return texts.map((text) => {
    const origin = originOf(text);
    if (origin !== undefined && (text === origin || text === `${origin}/`)) return origin;
    throw new SettingsError(
      `DEPUTE_AGENT_ENDPOINT_ORIGINS: ${text} is not an origin; set one like https://agents.example`,
    );
  });
}
