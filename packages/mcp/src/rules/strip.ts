import { isObject } from "@depute/core";

/** The member of a request that contains the token (DelegateOS 11.1). */
export const MEMBER = "_delegateos";
/** Prefix of `_meta` members that are addressed to the proxy, and not to the server. */
const ENVELOPE = "io.modelcontextprotocol/";
/** Maximum depth at which `_delegateos` is removed. No accepted document is nested deeper. */
const MAX_DEPTH = 64;

/** A request's parameters without the members that are addressed to the proxy. */
export interface Stripped {
  /** The parameters that the proxy forwards. */
  readonly params: Record<string, unknown>;
  /**
   * The presented `_delegateos`: the member of the parameters or, if absent there, of their `_meta`. Undefined if both
   * lack the member.
   */
  readonly member: unknown;
}

/**
 * Removes `_delegateos` from a request's parameters at every depth, so that no token reaches the server. Only a member
 * directly in the parameters or in their `_meta` counts as the presented token.
 */
export function strip(params: Readonly<Record<string, unknown>>): Stripped {
  const meta = params._meta;
  const member = own(params, MEMBER) ?? (isObject(meta) ? own(meta, MEMBER) : undefined);
  const stripped = without(params, 0) as Record<string, unknown>;
  if (!isObject(stripped._meta)) return { params: stripped, member };
  const metaEntries = Object.entries(stripped._meta).filter(
    ([name]) => name !== "progressToken" && !name.startsWith(ENVELOPE),
  );
  const { _meta, ...rest } = stripped;
  return {
    params: metaEntries.length === 0 ? rest : { ...rest, _meta: Object.fromEntries(metaEntries) },
    member,
  };
}

/**
 * Returns a value without its `_delegateos` members. Unchanged parts are not copied: the original and the returned
 * value share them.
 */
function without(value: unknown, depth: number): unknown {
  if (typeof value !== "object" || value === null || depth > MAX_DEPTH) return value;
  if (Array.isArray(value)) {
    const items = value.map((item) => without(item, depth + 1));
    return items.every((item, i) => item === value[i]) ? value : items;
  }
  let isSame = true;
  const members: [string, unknown][] = [];
  for (const [name, member] of Object.entries(value)) {
    if (name === MEMBER) {
      isSame = false;
      continue;
    }
    const cleanMember = without(member, depth + 1);
    isSame &&= cleanMember === member;
    members.push([name, cleanMember]);
  }
  // Object.fromEntries creates own members for all names, including `__proto__`.
  return isSame ? value : Object.fromEntries(members);
}

function own(value: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}
