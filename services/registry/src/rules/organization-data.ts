import type { PurgeRule } from "@depute/core";

/**
 * The rules that state what a purge of an organization does with each of the registry's tables. docs/operations.md
 * lists these rules.
 */
export const ORGANIZATION_DATA: readonly PurgeRule[] = [
  {
    kind: "agents",
    tables: [
      ...["agents", "agent_keys", "agent_uris", "bound_keys", "leases", "viewers"],
      ...["capabilities", "capability_keys", "capability_docs", "capability_text"],
    ],
    owned:
      "agents whose record names the organization, and their instances, with capabilities, keys, URIs, leases and viewers",
    deletes: "all",
    remains: "",
  },
  {
    kind: "agent versions",
    tables: ["agent_versions"],
    owned: "versions of its agents",
    deletes: "all",
    remains: "",
  },
  {
    kind: "offers",
    tables: ["offers", "offer_buyers", "offer_words"],
    owned: "versions of offers that name the organization, or that its agents sell",
    deletes: "all",
    remains: "",
  },
  {
    kind: "trust",
    tables: ["trust", "trust_sources"],
    owned: "totals of its agents, totals of other agents with them, and gains that they or it gave",
    deletes: "some",
    remains:
      "scores of other agents keep the gains that its agents gave; gains by a key keep limiting the key",
  },
  {
    kind: "trust evidence",
    tables: ["trust_evidence"],
    owned: "evidence about its agents, and evidence that its agents gave about others",
    deletes: "some",
    remains:
      "evidence about other agents stays without its givers' ids, because it explains scores; the id of an agent that only verified stays",
  },
  {
    kind: "members",
    tables: ["members"],
    owned: "its members",
    deletes: "all",
    remains: "",
  },
  {
    kind: "organization proofs",
    tables: ["organization_proofs"],
    owned: "its proofs, also those that have ended",
    deletes: "all",
    remains: "",
  },
  {
    kind: "proposals",
    tables: ["proposals"],
    owned: "proposals of its principals",
    deletes: "some",
    remains: "a withdrawn proposal stays until the verifier service has withdrawn its review: purge again",
  },
  {
    kind: "authority grants",
    tables: ["authority_grants"],
    owned: "grants that it owns, and grants to keys that act for no other agent or organization",
    deletes: "all",
    remains: "",
  },
  {
    kind: "agent changes",
    tables: ["changes"],
    owned: "changes of its agents",
    deletes: "some",
    remains: "places in the log stay without agents until DEPUTE_AGENT_CHANGES_KEPT drops them",
  },
  {
    kind: "registry answers",
    tables: ["requests"],
    owned: "answers to repeated requests of keys that act for no other agent or organization",
    deletes: "some",
    remains:
      "answers to other callers, such as operators, stay for a day after which a later call drops them",
  },
  {
    kind: "purged ids of the registry",
    tables: ["purged_ids"],
    owned:
      "SHA-256 digests of the ids of its agents and offers, of its authorities, and of its name if it was proven",
    deletes: "none",
    remains: "for ever: a digest keeps others from taking the id, the authority or the name",
  },
  {
    kind: "state of the registry",
    tables: ["registry_state"],
    owned: "",
    deletes: "none",
    remains: "",
  },
];
