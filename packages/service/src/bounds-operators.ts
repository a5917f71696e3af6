import { hasRole, type Identity } from "./authority.ts";
import type { Logger } from "./log.ts";

/**
 * The setting for the principals that may widen the bounds of agents. Every service that enforces such bounds
 * declares this setting.
 */
export const BOUNDS_OPERATORS = {
  type: "list",
  default: [],
  help:
    "principals that may widen what bounds an agent: its manifest's permissions, its overseer, its limits; " +
    "none: its owner on an open loopback, and no principal where credentials are required",
  group: "Registry",
} as const;

/**
 * The principals that may widen the bounds of agents: permissions, overseer, limits. An agent's owner may always
 * tighten the bounds.
 */
export class BoundsOperators {
  readonly #operators: ReadonlySet<string>;
  readonly #isOpen: boolean;

  /** @param auth whether a call without credentials is served, which is for loopback only */
  constructor(operators: readonly string[], auth: "open" | "required") {
    this.#operators = new Set(operators);
    this.#isOpen = auth === "open";
  }

  /** The principals that the setting names. */
  get named(): readonly string[] {
    return [...this.#operators];
  }

  /** Whether every owner may widen the bounds of its agents. True on an open server without bounds operators. */
  get ownersMay(): boolean {
    return this.#isOpen && this.#operators.size === 0;
  }

  /** Whether the caller is an operator: by its roles, or as one of the principals in the setting. */
  includes(identity: Pick<Identity, "principal" | "roles">): boolean {
    return hasRole(identity, "operator") || this.#operators.has(identity.principal);
  }

  /** Whether a caller that may change an agent may also widen the agent's bounds. */
  mayWiden(identity: Pick<Identity, "principal" | "roles">): boolean {
    return this.ownersMay || this.includes(identity);
  }

  /** Logs the effect of an empty setting at start-up. */
  announce(log: Pick<Logger, "info" | "warn">): void {
    if (this.#operators.size > 0) return;
    if (this.ownersMay) log.info("DEPUTE_BOUNDS_OPERATORS is empty: owners may widen their agents' bounds");
    else log.warn("DEPUTE_BOUNDS_OPERATORS is empty: only the role operator widens the bounds of an agent");
  }
}
