import { encodeHex, type IdRule, RELAXED_ID, randomBytes } from "@depute/core";
import { MAX_NAME_CHARS } from "./limits.ts";
import { ROOT_DELEGATION_ID } from "./types.ts";

/** Kinds of identifier: contracts (DelegateOS 5.1), delegations (8.1), attestations (7.1). */
export type IdKind = "ct" | "del" | "att";

export type { IdRule };

const STRICT: Record<IdKind, RegExp> = {
  ct: /^ct_[0-9a-f]{12}$/,
  del: /^del_[0-9a-f]{12}$/,
  att: /^att_[0-9a-f]{12}$/,
};

/** Whether `id` is an identifier of the kind. */
export function isId(kind: IdKind, id: unknown, rule: IdRule = "strict"): id is string {
  return typeof id === "string" && (STRICT[kind].test(id) || (rule === "relaxed" && RELAXED_ID.test(id)));
}

/**
 * Returns a new identifier: the prefix and 48 random bits. Among 20 million such ids, two are probably
 * equal. So never use an id as a key of state or for security. A block's revocation id has 256 bits and
 * identifies the block.
 */
export function newId(kind: IdKind): string {
  for (;;) {
    const bytes = randomBytes(6);
    const id = `${kind}_${encodeHex(bytes)}`;
    if (id !== ROOT_DELEGATION_ID) return id;
  }
}

/** The registered namespaces and their actions (DelegateOS 12). */
export const NAMESPACES: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ["web", new Set(["search", "fetch", "browse"])],
  ["docs", new Set(["read", "write", "delete"])],
  ["code", new Set(["execute", "analyze", "test"])],
  ["llm", new Set(["generate", "embed", "classify"])],
  ["data", new Set(["query", "insert", "update", "delete"])],
  ["compute", new Set(["spawn", "execute"])],
]);

const NAME = /^[a-z0-9_.:-]+$/;
const CUSTOM = /^[a-z0-9_.-]+:[a-z0-9_.-]+(:[a-z0-9_.-]+)*$/;

/**
 * Whether a text can be a namespace or an action: lower-case ASCII. `*` is refused, because it has no meaning
 * outside a resource. A matcher that read `*` as "all" would allow everything.
 */
export function isName(text: unknown): text is string {
  return typeof text === "string" && text.length <= MAX_NAME_CHARS && NAME.test(text);
}

/**
 * Whether a namespace and action are registered, or the namespace is a custom `org:namespace` (DelegateOS 12).
 * Call this function only when a token is created; a verifier compares the signed names byte for byte.
 */
export function isKnownCapability(namespace: string, action: string): boolean {
  const actions = NAMESPACES.get(namespace);
  if (actions !== undefined) return actions.has(action);
  return isName(namespace) && CUSTOM.test(namespace) && isName(action) && !action.includes(":");
}

/**
 * Splits `namespace:action` at the last colon, because a custom namespace contains a colon. Returns undefined for
 * any other text.
 */
export function splitRequirement(text: unknown): { namespace: string; action: string } | undefined {
  if (typeof text !== "string") return undefined;
  const colon = text.lastIndexOf(":");
  const [namespace, action] = [text.slice(0, Math.max(colon, 0)), text.slice(colon + 1)];
  return isName(namespace) && isName(action) ? { namespace, action } : undefined;
}

/** A namespace and its actions. */
export interface NamespaceEntry {
  readonly namespace: string;
  readonly actions: readonly string[];
}

/**
 * The namespaces that an issuer may use in new tokens (DelegateOS 12): those of the specification, and the issuer's
 * own. A custom `org:namespace` is known with every action until the issuer registers it, and then only with the
 * registered actions. With `registered`, all other custom namespaces are unknown, so that a misspelling grants
 * nothing. Verifiers do not use this registry.
 */
export class NamespaceRegistry {
  readonly #custom: "any" | "registered";
  readonly #entries = new Map<string, ReadonlySet<string>>(NAMESPACES);

  constructor(custom: "any" | "registered" = "any") {
    this.#custom = custom;
  }

  /**
   * Registers a custom namespace. Throws RangeError for a name that is not `org:namespace`, an invalid action,
   * or an empty list of actions. A namespace that is already registered also causes RangeError, because a
   * change would alter existing grants.
   */
  register(namespace: string, actions: readonly string[]): void {
    const isNew = !this.#entries.has(namespace);
    const areKnown = actions.length > 0 && actions.every((action) => isKnownCapability(namespace, action));
    if (!isNew || !areKnown) {
      throw new RangeError(isNew ? "not a custom org:namespace with its actions" : "registered already");
    }
    this.#entries.set(namespace, new Set(actions));
  }

  /** Whether an issuer may put a capability with this namespace and action into a new token. */
  knows(namespace: string, action: string): boolean {
    const actions = this.#entries.get(namespace);
    if (actions !== undefined) return actions.has(action);
    return this.#custom === "any" && isKnownCapability(namespace, action);
  }

  /** Returns all entries, those of the specification first. */
  list(): NamespaceEntry[] {
    return [...this.#entries].map(([namespace, actions]) => ({ namespace, actions: [...actions] }));
  }
}
