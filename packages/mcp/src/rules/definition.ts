/**
 * Lists whose entries run code or instruct a model. A caller may use an entry only if its definition is the one that
 * the proxy has shown to the caller: see definitionFault.
 */
export const PINNED = ["tools", "prompts"] as const;
export type Pinned = (typeof PINNED)[number];

/** An entry that a request uses: the list that contains the entry, and its name in that list. */
export interface Used {
  readonly list: Pinned;
  readonly name: string;
}

/** The facts about an entry's definition at the time of a request. `definitionDigest` computes the digests. */
export interface DefinitionFacts {
  /** Digest of the server's current definition; undefined if the server does not list the name. */
  readonly currentDigest: string | undefined;
  /** Digest that the tool map requires; undefined if it requires none. */
  readonly pinned: string | undefined;
  /**
   * Digest of the definition that the proxy last showed to the caller; undefined if the caller has not listed the
   * entry.
   */
  readonly listedDigest: string | undefined;
  /** Whether the server has listed different definitions under the name since the proxy started. */
  readonly hasChanged: boolean;
}

const WORDS = { tools: "tool", prompts: "prompt" } as const;

/** Returns the tool or the prompt that a request uses; undefined if the request uses neither. */
export function usedBy(method: string, params: Readonly<Record<string, unknown>>): Used | undefined {
  if (method === "tools/call") return usedEntry("tools", params.name);
  if (method === "prompts/get") return usedEntry("prompts", params.name);
  if (method !== "completion/complete") return undefined;
  const { type, name } = (params.ref ?? {}) as { type?: unknown; name?: unknown };
  return type === "ref/prompt" ? usedEntry("prompts", name) : undefined;
}

/**
 * Returns the reason why a definition does not allow a request; undefined if the request is allowed. A caller may use
 * an unlisted entry if its definition never changed, because the caller cannot have seen another one. An unlisted entry
 * is also allowed if the tool map pins its definition.
 */
export function definitionFault(
  list: Pinned,
  { currentDigest, pinned, listedDigest, hasChanged }: DefinitionFacts,
): string | undefined {
  const noun = WORDS[list];
  if (currentDigest === undefined) return `the ${noun} does not exist on the server`;
  if (pinned !== undefined && pinned !== currentDigest) {
    return `the ${noun}'s definition differs from the one that the tool map pins: review it, then pin it again`;
  }
  if (listedDigest === currentDigest) return undefined;
  if (listedDigest !== undefined)
    return `the ${noun}'s definition has changed since the caller listed it: list again`;
  if (!hasChanged || pinned !== undefined) return undefined;
  return `the ${noun}'s definition has changed, and the caller has not listed the new one: list first`;
}

function usedEntry(list: Pinned, name: unknown): Used {
  return { list, name: typeof name === "string" ? name : "" };
}
