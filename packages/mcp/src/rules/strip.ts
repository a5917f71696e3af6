import { isObject } from "@depute/core";

/** The member that carries authority (DelegateOS 11.1). */
export const MEMBER = "_delegateos";
/** The members of `_meta` that are between a client and the proxy. */
const ENVELOPE = "io.modelcontextprotocol/";
/** Deeper than any document that is let in. */
const MAX_DEPTH = 64;

/** Parameters without what was meant for the proxy alone. */
export interface Stripped {
  /** What is forwarded. */
  readonly params: Record<string, unknown>;
  /** What `_delegateos` was: of the parameters, else of their `_meta`; undefined for none. */
  readonly member: unknown;
}

/**
 * Takes `_delegateos` out of a request's parameters, at whatever depth, so that no token reaches the server. Only that of
 * the parameters themselves, or of their `_meta`, counts as presented.
 */
export function strip(params: Readonly<Record<string, unknown>>): Stripped {
  const meta = params._meta;
  const member = own(params, MEMBER) ?? (isObject(meta) ? own(meta, MEMBER) : undefined);
  const stripped = without(params, 0) as Record<string, unknown>;
  if (!isObject(stripped._meta)) return { params: stripped, member };
  const kept = Object.entries(stripped._meta).filter(
    ([name]) => name !== "progressToken" && !name.startsWith(ENVELOPE),
  );
  const { _meta, ...rest } = stripped;
  return { params: kept.length === 0 ? rest : { ...rest, _meta: Object.fromEntries(kept) }, member };
}

/** The same value where there is nothing to take out, so that most of a document is not copied. */
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
    const kept = without(member, depth + 1);
    isSame &&= kept === member;
    members.push([name, kept]);
  }
  // fromEntries makes own members of any name, `__proto__` among them.
  return isSame ? value : Object.fromEntries(members);
}

function own(value: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}
