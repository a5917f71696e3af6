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
