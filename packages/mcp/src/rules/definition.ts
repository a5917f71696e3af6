/** Lists whose entries run code or instruct a model, so that an entry has to be what its caller was shown. */
export const PINNED = ["tools", "prompts"] as const;
export type Pinned = (typeof PINNED)[number];

/** The entry of such a list that a request uses. */
export interface Used {
  readonly list: Pinned;
  readonly name: string;
}

/** What is known of a definition when a request uses it. Digests are those of `definitionDigest`. */
export interface DefinitionFacts {
  /** Digest of the definition that the server lists now; undefined where it lists none of the name. */
  readonly present: string | undefined;
  /** Digest that the tool map names; undefined for none. */
  readonly pinned: string | undefined;
  /** Digest of the definition that the caller was shown last; undefined for a caller that has not listed it. */
  readonly shown: string | undefined;
  /** Whether this proxy has seen the server list another definition under the name. */
  readonly hasChanged: boolean;
}

const WORDS = { tools: "tool", prompts: "prompt" } as const;

/** The entry that a request uses; undefined for a request that uses none of these lists. */
export function usedBy(method: string, params: Readonly<Record<string, unknown>>): Used | undefined {
  if (method === "tools/call") return named("tools", params.name);
  if (method === "prompts/get") return named("prompts", params.name);
  if (method !== "completion/complete") return undefined;
  const { type, name } = (params.ref ?? {}) as { type?: unknown; name?: unknown };
  return type === "ref/prompt" ? named("prompts", name) : undefined;
}

/**
 * Why a definition does not let a request pass; undefined where it does (threats.md M6).
 *
 * A caller that has not listed may use a definition that has never changed, or that the tool map pins: these are the ones
 * that it can have been shown elsewhere.
 */
export function definitionFault(
  list: Pinned,
  { present, pinned, shown, hasChanged }: DefinitionFacts,
): string | undefined {
  const what = WORDS[list];
  if (present === undefined) return `the server has no such ${what}`;
  if (pinned !== undefined && pinned !== present) {
    return `the ${what}'s definition changed since it was configured`;
  }
  if (shown === present) return undefined;
  if (shown !== undefined) return `the ${what}'s definition changed since it was listed; list again`;
  if (!hasChanged || pinned !== undefined) return undefined;
  return `the ${what}'s definition has changed, and the caller has not listed it since; list first`;
}

function named(list: Pinned, name: unknown): Used {
  return { list, name: typeof name === "string" ? name : "" };
}
