import { type Agent, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { AuthoritySource } from "@depute/contracts/depute/registry/v1/authority_service_pb";
import { type Clock, DeputeError, ErrorReason, invalid } from "@depute/core";
import { isPurged, type ReadTx, type Store, type WriteTx } from "@depute/store";
import type { AuthorityKeys } from "./authority-keys.ts";
import type { StoredAgent } from "./rules/agent.ts";
import {
  type AuthorityPolicy,
  aspKeyOf,
  authorityOf,
  authorityStanding,
  findGrant,
} from "./rules/authority.ts";
import { findAgent } from "./store/agents.ts";
import {
  findAgentOfUri,
  listGrants,
  type NewGrant,
  putGrant,
  putUri,
  removeGrant,
  type StoredGrant,
} from "./store/authorities.ts";
import { provenOrganizations } from "./store/proofs.ts";

/** Maximum number of grants of one authority. */
export const MAX_GRANTS = 1_000;

/** Field of the agent's URI in the request, for errors. */
const FIELD = "agent.card.agent_id";

export interface AuthoritiesOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly policy: AuthorityPolicy;
  /** Principals that may grant any authority. */
  readonly operators: readonly string[];
  /** Reads the keys that domains publish. */
  readonly keys: AuthorityKeys;
}

/** Manages the authorities of agent URIs: the principals that hold each authority, and the agent of each URI. */
export class Authorities {
  readonly operators: readonly string[];
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #policy: AuthorityPolicy;
  readonly #keys: AuthorityKeys;

  constructor({ store, clock, policy, operators, keys }: AuthoritiesOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#policy = policy;
    this.operators = operators;
    this.#keys = keys;
  }

  /**
   * Whether the domain of the agent's authority publishes the agent's key. Returns false without an HTTP call if the
   * agent has no URI or no key, if the settings do not allow the domain's host, or if the key already holds the
   * authority. Do not call this method within a transaction.
   *
   * @throws DeputeError INVALID_REQUEST for a URI without an authority, DEPENDENCY_UNAVAILABLE (the domain does not
   * answer)
   */
  async prove(agent: Agent, signal: AbortSignal): Promise<boolean> {
    const uri = agent.card?.agentId;
    const key = aspKeyOf(agent);
    if (uri === undefined) return false;
    const authority = requireAuthority(uri);
    if (key === "" || !this.#keys.isConfigured(authority)) return false;
    const grants = await this.#store.read((tx) => listGrants(tx, authority, "", MAX_GRANTS));
    if (findGrant(grants, key) !== undefined) return false;
    return (await this.#keys.listKeys(authority, signal)).includes(key);
  }

  /**
   * Assigns the URI of an agent's card to the agent, in the transaction of the registration. Without a card, removes
   * the agent's previous URI. The agent's key gets a grant in two cases: the authority's domain publishes the key, or
   * `authorityStanding` lets the first registration below the authority take the authority.
   *
   * @param isProven the result of `prove`
   * @throws DeputeError INVALID_REQUEST for a URI without an authority, CALLER_NOT_ALLOWED (the key does not hold the
   * authority), AGENT_EXISTS (another agent has the URI), LIMIT_EXCEEDED
   */
  async claim(tx: WriteTx, agent: Agent, isProven: boolean): Promise<void> {
    const uri = agent.card?.agentId;
    if (uri === undefined) return putUri(tx, agent.id, undefined);
    const authority = requireAuthority(uri);
    const key = aspKeyOf(agent);
    const grants = await listGrants(tx, authority, "", MAX_GRANTS);
    const standing = authorityStanding(grants, key, this.#policy, this.#keys.isConfigured(authority));
    if (key === "") {
      // An agent without a key cannot take part in ASP, so it gets no URI. If other principals hold the authority,
      // the registration is refused.
      if (standing === "taken") throw refusal(authority, standing);
      return putUri(tx, agent.id, undefined);
    }
    if (standing !== "holds") {
      if (!isProven && standing !== "first") throw refusal(authority, standing);
      // After a purge of the organization that had the authority, a first registration does not assign the authority.
      // Only a grant or a key that the domain publishes can assign the authority again.
      if (!isProven && (await isPurged(tx, "authority", authority))) throw refusal(authority, "ungranted");
      const source = isProven ? AuthoritySource.PROVEN : AuthoritySource.FIRST;
      await this.add(tx, grants, { authority, principal: key, source, grantedBy: key });
    }
    await this.#requireFree(tx, agent, uri);
    await putUri(tx, agent.id, uri);
  }

  /**
   * Grants an authority to a principal. If the principal has a grant, that grant stays, unless the new source is
   * GRANTED and the existing source is not.
   *
   * @param grants the grants of the authority
   * @throws DeputeError LIMIT_EXCEEDED
   */
  async grant(
    tx: WriteTx,
    grants: readonly StoredGrant[],
    { authority, principal }: Pick<NewGrant, "authority" | "principal">,
    { grantedBy, source }: Pick<NewGrant, "grantedBy" | "source">,
  ): Promise<StoredGrant> {
    const existing = grants.find((one) => one.principal === principal);
    const stays =
      existing !== undefined && (existing.source === source || source !== AuthoritySource.GRANTED);
    return stays ? existing : this.add(tx, grants, { authority, principal, source, grantedBy });
  }

  /**
   * Adds a grant to an authority, or replaces the principal's grant.
   *
   * @throws DeputeError LIMIT_EXCEEDED
   */
  async add(tx: WriteTx, grants: readonly StoredGrant[], grant: NewGrant): Promise<StoredGrant> {
    const isKnown = grants.some(({ principal }) => principal === grant.principal);
    if (!isKnown && grants.length >= MAX_GRANTS) {
      throw new DeputeError(
        ErrorReason.LIMIT_EXCEEDED,
        `${grant.authority} has reached the limit of grants; delete one first`,
        { metadata: { limit: "authority_grants", max: String(MAX_GRANTS) } },
      );
    }
    const [organization = "", ...others] = await provenOrganizations(tx, grant.grantedBy);
    // If the grantor belongs to several organizations, no organization owns the grant.
    const owner = others.length === 0 ? organization : "";
    const newGrant = { ...grant, createTime: this.#clock.now(), organization: owner };
    await putGrant(tx, newGrant);
    return newGrant;
  }

  /**
   * Finds the agent of a URI. Returns undefined if no agent has the URI, if the agent was removed, or if the agent's
   * key does not hold the authority.
   */
  async find(tx: ReadTx, uri: string): Promise<StoredAgent | undefined> {
    const id = await findAgentOfUri(tx, uri);
    const agent = id === undefined ? undefined : await findAgent(tx, id);
    if (agent === undefined || agent.status === AgentStatus.REMOVED) return undefined;
    return (await this.#holds(tx, uri, aspKeyOf(agent.ownerMembers))) ? agent : undefined;
  }

  /**
   * Grants the authority of a replaced key to the new key. The replaced key loses its grant only if the grant came from
   * a first registration. Otherwise both keys have a grant. Changes nothing if the replaced key has no grant, or if the
   * new key already has one.
   */
  async replace(tx: WriteTx, { card }: Agent, from: string, to: string): Promise<void> {
    const authority = card === undefined ? undefined : authorityOf(card.agentId);
    if (authority === undefined) return;
    const grants = await listGrants(tx, authority, "", MAX_GRANTS);
    const existingGrant = grants.find(({ principal }) => principal === from);
    if (existingGrant === undefined || grants.some(({ principal }) => principal === to)) return;
    if (existingGrant.source === AuthoritySource.FIRST) await removeGrant(tx, authority, from);
    await putGrant(tx, { ...existingGrant, principal: to, grantedBy: from, createTime: this.#clock.now() });
  }

  async #holds(tx: ReadTx, uri: string, key: string): Promise<boolean> {
    const authority = authorityOf(uri);
    if (authority === undefined || key === "") return false;
    return findGrant(await listGrants(tx, authority, "", MAX_GRANTS), key) !== undefined;
  }

  /**
   * Requires that no other agent has a URI. An agent that was removed, or whose key no longer holds the authority, does
   * not count.
   *
   * @throws DeputeError AGENT_EXISTS
   */
  async #requireFree(tx: ReadTx, agent: Agent, uri: string): Promise<void> {
    const owner = await this.find(tx, uri);
    if (owner === undefined || owner.record.id === agent.id) return;
    throw new DeputeError(
      ErrorReason.AGENT_EXISTS,
      `another agent has the URI ${uri}; register this agent under a different URI`,
      { metadata: { agent: uri }, violations: [{ field: FIELD, description: "belongs to another agent" }] },
    );
  }
}

function requireAuthority(uri: string): string {
  const authority = authorityOf(uri);
  if (authority === undefined) {
    throw invalid(
      FIELD,
      "must begin with agent:// and a host name in lower case, like agent://example.com/desk/name",
    );
  }
  return authority;
}

const WHY = {
  taken: "belongs to another principal",
  ungranted: "has no grant, and this platform requires one",
} as const;

function refusal(authority: string, standing: keyof typeof WHY): DeputeError {
  return new DeputeError(
    ErrorReason.CALLER_NOT_ALLOWED,
    `the authority ${authority} ${WHY[standing]}; ask an operator or a holder for a grant (AuthorityService.CreateAuthorityGrant), propose one (ProposalService.CreateProposal), or use your own authority`,
    {
      metadata: { authority },
      violations: [{ field: FIELD, description: `the authority ${WHY[standing]}` }],
    },
  );
}
