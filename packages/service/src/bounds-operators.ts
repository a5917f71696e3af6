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
    "principals that may widen the bounds of an agent: its manifest's permissions, its overseer, its limits; " +
    "none: on an open loopback the agent's principal, and otherwise no principal",
  group: "Registry",
} as const;

/**
 * The principals that may widen the bounds of agents: permissions, overseer and limits. An agent's principal may always
 * tighten these bounds.
 */
export class BoundsOperators {
  readonly #operators: ReadonlySet<string>;
  readonly #isOpen: boolean;

  /** @param auth `open` if the server accepts calls without credentials, which it does only on loopback */
  constructor(operators: readonly string[], auth: "open" | "required") {
    this.#operators = new Set(operators);
    this.#isOpen = auth === "open";
  }

  /** The principals that the setting names. */
  get named(): readonly string[] {
    return [...this.#operators];
  }

  /**
   * Whether every principal may widen the bounds of its own agents: on an open server whose setting names no operators.
   */
  get ownersMay(): boolean {
    return this.#isOpen && this.#operators.size === 0;
  }

  /** Whether the caller is an operator: it has the role `operator`, or the setting names its principal. */
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
