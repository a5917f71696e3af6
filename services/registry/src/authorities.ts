import { type Agent, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { AuthoritySource } from "@depute/contracts/depute/registry/v1/authority_service_pb";
import { type Clock, DeputeError, ErrorReason, invalid } from "@depute/core";
import type { ReadTx, Store, WriteTx } from "@depute/store";
import type { AuthorityKeys } from "./authority-keys.ts";
import type { StoredAgent } from "./rules/agent.ts";
import { type AuthorityPolicy, authorityOf, holdingOf, keyOf, standingOf } from "./rules/authority.ts";
import { findAgent } from "./store/agents.ts";
import {
  findAgentOfUri,
  listGrants,
  putGrant,
  putUri,
  removeGrant,
  type StoredGrant,
} from "./store/authorities.ts";

/** Grants that one authority may have. */
export const MAX_GRANTS = 1_000;

/** Where a registration names the URI. */
const FIELD = "agent.card.agent_id";

export interface AuthoritiesOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly policy: AuthorityPolicy;
  /** Principals that may grant every authority. */
  readonly operators: readonly string[];
  /** What domains publish. */
  readonly keys: AuthorityKeys;
}

/** Who holds the authorities of agent URIs, and which agent has which URI. */
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
   * Whether the domain of an agent's authority publishes the agent's key. The domain is asked only where configuration allows
   * it and the key has no grant yet, and outside of any transaction.
   *
   * @throws DeputeError INVALID_REQUEST for a URI without an authority, DEPENDENCY_UNAVAILABLE (the domain does not answer)
   */
  async prove(agent: Agent, signal: AbortSignal): Promise<boolean> {
    const uri = agent.card?.agentId;
    const key = keyOf(agent);
    if (uri === undefined) return false;
    const authority = requireAuthority(uri);
    if (key === "" || !this.#keys.covers(authority)) return false;
    const grants = await this.#store.read((tx) => listGrants(tx, authority, "", MAX_GRANTS));
    if (holdingOf(grants, key) !== undefined) return false;
    return (await this.#keys.of(authority, signal)).includes(key);
  }

  /**
   * Gives an agent the URI of its card, in the transaction of its registration. A key that the authority's domain publishes,
   * or that is the first below an authority, gets a grant.
   *
   * @param isProven what `prove` said
   * @throws DeputeError CALLER_NOT_ALLOWED (the key does not hold the authority), AGENT_EXISTS (another agent has the URI),
   * LIMIT_EXCEEDED
   */
  async claim(tx: WriteTx, agent: Agent, isProven: boolean): Promise<void> {
    const uri = agent.card?.agentId;
    if (uri === undefined) return putUri(tx, agent.id, undefined);
    const authority = requireAuthority(uri);
    const key = keyOf(agent);
    const grants = await listGrants(tx, authority, "", MAX_GRANTS);
    const standing = standingOf(grants, key, this.#policy, this.#keys.covers(authority));
    if (key === "") {
      // Without a key the agent cannot speak on ASP, so it takes nothing; but it must not pass for another's either.
      if (standing === "taken") throw refusal(authority, standing);
      return putUri(tx, agent.id, undefined);
    }
    if (standing !== "holds") {
      if (!isProven && standing !== "first") throw refusal(authority, standing);
      const source = isProven ? AuthoritySource.PROVEN : AuthoritySource.FIRST;
      await this.add(tx, grants, { authority, principal: key, source, grantedBy: key });
    }
    await this.#requireFree(tx, agent, uri);
    await putUri(tx, agent.id, uri);
  }

  /**
   * Adds a grant to those of an authority, or replaces the principal's.
   *
   * @throws DeputeError LIMIT_EXCEEDED
   */
  async add(
    tx: WriteTx,
    grants: readonly StoredGrant[],
    grant: Omit<StoredGrant, "createTime">,
  ): Promise<StoredGrant> {
    const isKnown = grants.some(({ principal }) => principal === grant.principal);
    if (!isKnown && grants.length >= MAX_GRANTS) {
      throw new DeputeError(
        ErrorReason.LIMIT_EXCEEDED,
        `${grant.authority} has as many grants as an authority may have: delete one first`,
        { metadata: { limit: "authority_grants", max: String(MAX_GRANTS) } },
      );
    }
    const made = { ...grant, createTime: this.#clock.now() };
    await putGrant(tx, made);
    return made;
  }

  /** The agent that has a URI, while its key holds the authority; undefined where there is none, or it was removed. */
  async find(tx: ReadTx, uri: string): Promise<StoredAgent | undefined> {
    const id = await findAgentOfUri(tx, uri);
    const agent = id === undefined ? undefined : await findAgent(tx, id);
    if (agent === undefined || agent.status === AgentStatus.REMOVED) return undefined;
    return (await this.#holds(tx, uri, keyOf(agent.own))) ? agent : undefined;
  }

  /** A key that replaces another takes over its grant; the old one keeps it only where an operator or the domain gave it. */
  async replace(tx: WriteTx, { card }: Agent, from: string, to: string): Promise<void> {
    const authority = card === undefined ? undefined : authorityOf(card.agentId);
    if (authority === undefined) return;
    const grants = await listGrants(tx, authority, "", MAX_GRANTS);
    const held = grants.find(({ principal }) => principal === from);
    if (held === undefined || grants.some(({ principal }) => principal === to)) return;
    if (held.source === AuthoritySource.FIRST) await removeGrant(tx, authority, from);
    await putGrant(tx, { ...held, principal: to, grantedBy: from, createTime: this.#clock.now() });
  }

  async #holds(tx: ReadTx, uri: string, key: string): Promise<boolean> {
    const authority = authorityOf(uri);
    if (authority === undefined || key === "") return false;
    return holdingOf(await listGrants(tx, authority, "", MAX_GRANTS), key) !== undefined;
  }

  /** A URI is one agent's: another's only where that one was removed, or its key does not hold the authority any more. */
  async #requireFree(tx: ReadTx, agent: Agent, uri: string): Promise<void> {
    const owner = await this.find(tx, uri);
    if (owner === undefined || owner.record.id === agent.id) return;
    throw new DeputeError(
      ErrorReason.AGENT_EXISTS,
      `another agent has the URI ${uri}: register this one under a URI of its own`,
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
  ungranted: "is granted to nobody, and here an authority needs a grant",
} as const;

function refusal(authority: string, standing: keyof typeof WHY): DeputeError {
  return new DeputeError(
    ErrorReason.CALLER_NOT_ALLOWED,
    `the authority ${authority} ${WHY[standing]}: ask an operator or a holder for a grant (AuthorityService.CreateAuthorityGrant), or use an authority of your own`,
    {
      metadata: { authority },
      violations: [{ field: FIELD, description: `the authority ${WHY[standing]}` }],
    },
  );
}
