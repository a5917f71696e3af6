import { MAX_NAME_CHARS } from "./limits.ts";

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
 * Whether a text can be a namespace or an action at all: lower-case ASCII, compared byte for byte. `*` cannot: the
 * text gives it no meaning outside a resource, and a matcher that reads it as "all" gives away everything.
 */
export function isName(text: unknown): text is string {
  return typeof text === "string" && text.length <= MAX_NAME_CHARS && NAME.test(text);
}

/**
 * Whether a namespace and action are registered, or the namespace is a custom `org:namespace` (DelegateOS 12).
 * Asked of what is minted; a verifier compares byte for byte whatever a trusted root has signed.
 */
export function isKnownCapability(namespace: string, action: string): boolean {
  const actions = NAMESPACES.get(namespace);
  if (actions !== undefined) return actions.has(action);
  return isName(namespace) && CUSTOM.test(namespace) && isName(action) && !action.includes(":");
}

/** The two parts of `namespace:action`, split at the last colon since custom namespaces hold one; undefined otherwise. */
export function splitRequirement(text: unknown): { namespace: string; action: string } | undefined {
  if (typeof text !== "string") return undefined;
  const colon = text.lastIndexOf(":");
  const [namespace, action] = [text.slice(0, Math.max(colon, 0)), text.slice(colon + 1)];
  return isName(namespace) && isName(action) ? { namespace, action } : undefined;
}

/** A namespace and what can be done in it. */
export interface NamespaceEntry {
  readonly namespace: string;
  readonly actions: readonly string[];
}

/**
 * The namespaces that an issuer knows (DelegateOS 12): those of the text, and its own. Asked of what is minted, like
 * isKnownCapability, of which it is the form with a memory.
 *
 * A custom `org:namespace` is known with every action until it is registered, then with the registered ones. With
 * `registered` no other custom ones are known, so that a slip of the pen grants nothing.
 */
export class NamespaceRegistry {
  readonly #custom: "any" | "registered";
  readonly #entries = new Map<string, ReadonlySet<string>>(NAMESPACES);

  constructor(custom: "any" | "registered" = "any") {
    this.#custom = custom;
  }

  /**
   * Registers a custom namespace. Throws RangeError for a name that is not `org:namespace`, an action that is no name,
   * no action at all, and a namespace that is there: what was granted in it would change its meaning.
   */
  register(namespace: string, actions: readonly string[]): void {
    const isNew = !this.#entries.has(namespace);
    const areKnown = actions.length > 0 && actions.every((action) => isKnownCapability(namespace, action));
    if (!isNew || !areKnown) {
      throw new RangeError(isNew ? "not a custom org:namespace with its actions" : "registered already");
    }
    this.#entries.set(namespace, new Set(actions));
  }

  /** Whether a capability with this namespace and action may be minted. */
  knows(namespace: string, action: string): boolean {
    const actions = this.#entries.get(namespace);
    if (actions !== undefined) return actions.has(action);
    return this.#custom === "any" && isKnownCapability(namespace, action);
  }

  /** All entries, those of the text first. */
  list(): NamespaceEntry[] {
    return [...this.#entries].map(([namespace, actions]) => ({ namespace, actions: [...actions] }));
  }
}
