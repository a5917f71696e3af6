import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { AuthorityService } from "@depute/contracts/depute/registry/v1/authority_service_pb";
import { DiscoveryService } from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { OfferService } from "@depute/contracts/depute/registry/v1/offer_service_pb";
import { OrganizationService } from "@depute/contracts/depute/registry/v1/organization_service_pb";
import { PolicyService } from "@depute/contracts/depute/registry/v1/policy_service_pb";
import { TrustService } from "@depute/contracts/depute/registry/v1/trust_service_pb";
import { servicesOf } from "@depute/core/services";
import {
  AllowedHosts,
  BOUNDS_OPERATORS,
  BoundsOperators,
  defineService,
  defineSettings,
  Outbound,
  SettingsError,
} from "@depute/service";
import { openStore, ReadCache } from "@depute/store";
import { AgentIndex } from "./agent-index/agent-index.ts";
import { Authorities } from "./authorities.ts";
import { PLACEHOLDER, PublishedKeys } from "./authority-keys.ts";
import { openCardKey } from "./card-key.ts";
import type { RegistryContext } from "./context.ts";
import { agentService } from "./handlers/agent-service.ts";
import { authorityService } from "./handlers/authority-service.ts";
import { discoveryService } from "./handlers/discovery-service.ts";
import { offerService } from "./handlers/offer-service.ts";
import { organizationService } from "./handlers/organization-service.ts";
import { policyService } from "./handlers/policy-service.ts";
import { trustService } from "./handlers/trust-service.ts";
import { startLeaseWatch } from "./lease-watch.ts";
import { RemovalGuard } from "./removal-guard.ts";
import { originOf } from "./rules/endpoints.ts";
import { Predicates } from "./rules/predicate.ts";
import { HASH_LENGTHS } from "./rules/version-hash.ts";
import { createSchemaChecker } from "./schema-checker.ts";
import { fillIndex } from "./store/indexing.ts";
import { migrations } from "./store/migrations.ts";
import { readLastUp } from "./store/registry-state.ts";

/** What lists and look-ups read again and again, of some 100,000 agents. */
const READ_CACHE_MIB = 64;

/** Agents held in memory as they were asked for last; each costs some kilobytes, one with a large manifest up to 70. */
const RECENT_AGENTS = 256;

/** Agents, what they can do, and whether they live. */
export const registry = defineService({
  name: "registry",
  settings: defineSettings({
    versionHashLength: {
      type: "string",
      choices: HASH_LENGTHS,
      default: "8",
      help: "digits of the version hashes that capabilities are listed with",
      group: "Registry",
    },
    agentChangesKept: {
      type: "int",
      min: 1,
      max: 100_000_000,
      default: 100_000,
      help: "changes of agents that are kept for those who watch them",
      group: "Registry",
    },
    searchIndexMib: {
      type: "int",
      min: 0,
      max: 100_000,
      default: 512,
      help: "MiB of memory for the index that searches by filters go by, of which 100,000 agents with 5 capabilities take 115 to 510; where it does not suffice such searches are slower",
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
    agentEndpointOrigins: {
      type: "list",
      default: [],
      help: "origins that agents' registered addresses may have, like https://agents.example; none: every one",
      group: "Registry",
    },
    trustLevels: {
      type: "list",
      default: ["25", "50", "75", "90"],
      help: "scores from which on the levels of trust 1 to 4 begin, ascending",
      group: "Registry",
    },
    trustOperators: {
      type: "list",
      default: [],
      help: "Ed25519 public keys in base64url: operators whose signed imports of trust count, and who prove organizations; none: the caller without credentials on an open loopback proves them, and no principal where credentials are required",
      group: "Registry",
    },
    aspAuthorities: {
      type: "string",
      choices: ["first", "granted"],
      default: "first",
      help: "who holds an authority of agent URIs (example.com in agent://example.com/desk/name) that nobody was granted: the `first` principal that registers an agent below it, or nobody",
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
      help: "hosts that are asked for an authority's keys, as host or host:port, with private: before it where it may lead to a private address; such authorities go to the keys that they publish; none: nobody is asked",
      group: "Registry",
    },
    aspAuthorityKeys: {
      type: "string",
      default: `https://${PLACEHOLDER}/.well-known/asp-keys.json`,
      help: "where an authority publishes its keys, a JSON Web Key Set (RFC 7517)",
      group: "Registry",
    },
    registrationProof: {
      type: "string",
      choices: ["open", "required"],
      default: "open",
      help: "`required`: also a caller without credentials has to bring a statement signed by the agent's key",
      group: "Registry",
    },
  }),
  descriptors: servicesOf("registry"),
  async start(deps, settings) {
    const { log, clock, bus, authority, dataDir } = deps;
    const cardKey = openCardKey(dataDir);
    const store = await openStore({
      ...deps.storeAt("registry", { card: cardKey.publicKey }),
      readCacheMib: READ_CACHE_MIB,
      migrations,
      onError: (error, what) => log.error({ err: error }, what),
    });
    const index = new AgentIndex({
      maxBytes: settings.searchIndexMib * 1024 * 1024,
      onFull: () => log.warn("the agents do not fit the search index: DEPUTE_SEARCH_INDEX_MIB"),
    });
    await fillIndex(store, index);
    const boundsOperators = new BoundsOperators(settings.boundsOperators, deps.auth);
    boundsOperators.announce(log);
    const localProves = settings.trustOperators.length === 0 && deps.auth === "open";
    if (localProves)
      log.info("DEPUTE_TRUST_OPERATORS is empty: callers without credentials prove organizations");
    else if (settings.trustOperators.length === 0) {
      log.warn("DEPUTE_TRUST_OPERATORS is empty: no principal proves organizations");
    }
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
      index,
      recent: new ReadCache(RECENT_AGENTS),
      predicates: new Predicates(),
      bus,
      clock,
      authority,
      schemas: createSchemaChecker(deps.connect("verifier")),
      guard: new RemovalGuard(clock, await store.read(readLastUp)),
      timers: deps.timers,
      stopping: deps.stopping,
      changesKept: settings.agentChangesKept,
      hashLength: Number(settings.versionHashLength),
      // Known once the server listens.
      get publicUrl() {
        return deps.publicUrl;
      },
      proofRequired: settings.registrationProof === "required",
      orchestratorMay: settings.orchestratorMayDelegate,
      endpointOrigins: readOrigins(settings.agentEndpointOrigins),
      cardKey,
      boundsOperators,
      trustOperators: settings.trustOperators,
      localProves,
      trustLevels: readLevels(settings.trustLevels),
      orchestrators: settings.orchestratorPrincipals,
    };
    const leases = startLeaseWatch(context, log);
    return {
      routes: (router) => {
        router.service(AgentService, agentService(context));
        router.service(AuthorityService, authorityService(context));
        router.service(DiscoveryService, discoveryService(context));
        router.service(OrganizationService, organizationService(context));
        router.service(TrustService, trustService(context));
        router.service(PolicyService, policyService(context));
        router.service(OfferService, offerService(context));
      },
      async close() {
        try {
          await leases.stop();
        } finally {
          outbound.close();
          await store.close();
        }
      },
    };
  },
});

/** @throws SettingsError unless there are four thresholds between 0 and 100 that ascend */
function readLevels(texts: readonly string[]): number[] {
  const levels = texts.map(Number);
  const ascend = levels.every((level, i) => level > (levels[i - 1] ?? 0) && level <= 100);
  if (levels.length === 4 && ascend) return levels;
  throw new SettingsError("DEPUTE_TRUST_LEVELS: write four scores that ascend, like 25,50,75,90");
}

/** @throws SettingsError for what is no host */
function readHosts(texts: readonly string[]): AllowedHosts {
  try {
    return new AllowedHosts(texts);
  } catch (cause) {
    throw new SettingsError(`DEPUTE_ASP_AUTHORITY_HOSTS: ${(cause as Error).message}`, { cause });
  }
}

/** @throws SettingsError for an address that is none, or names no authority */
function readAddress(text: string): string {
  const sample = text.replaceAll(PLACEHOLDER, "a.example");
  if (text.includes(PLACEHOLDER) && /^https?:/.test(text) && URL.canParse(sample)) return text;
  throw new SettingsError(
    `DEPUTE_ASP_AUTHORITY_KEYS: write an http or https address with ${PLACEHOLDER} in it`,
  );
}

/** @throws SettingsError for what is no origin */
function readOrigins(texts: readonly string[]): string[] {
  return texts.map((text) => {
    const origin = originOf(text);
    if (origin !== undefined && (text === origin || text === `${origin}/`)) return origin;
    throw new SettingsError(
      `DEPUTE_AGENT_ENDPOINT_ORIGINS: ${text} is no origin, like https://agents.example`,
    );
  });
}
