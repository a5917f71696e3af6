import type { CryptoEngine } from "../engine.ts";
import type { Keypair } from "../types.ts";
import { isTaggedBy, signTagged } from "./tagged.ts";

/** Maximum number of statements that a reader follows. */
export const MAX_SUCCESSIONS = 1000;

/** The statement that one root key follows another. Both keys sign it. */
export interface RootSuccession {
  /** Principals of the earlier key (`from`) and of the new key (`to`). */
  readonly from: string;
  readonly to: string;
  /** The time of the statement, RFC 3339 UTC with milliseconds. */
  readonly createdAt: string;
  /** Signatures of the earlier key and of the new key, base64url. */
  readonly fromSignature: string;
  readonly toSignature: string;
}

/** Signs the statement that `to` follows `from`. */
export function signRootSuccession(
  engine: CryptoEngine,
  from: Keypair,
  to: Keypair,
  createdAt: string,
): RootSuccession {
  const body = { from: from.principal.id, to: to.principal.id, createdAt };
  return {
    ...body,
    fromSignature: signTagged(engine, "rootsuccession", body, from),
    toSignature: signTagged(engine, "rootsuccession", body, to),
  };
}

/** Whether both keys signed a statement. Never throws for a statement of this form. */
export function isSignedRootSuccession(
  engine: CryptoEngine,
  { fromSignature, toSignature, ...body }: RootSuccession,
): boolean {
  return (
    isTaggedBy(engine, "rootsuccession", body, body.from, fromSignature) &&
    isTaggedBy(engine, "rootsuccession", body, body.to, toSignature)
  );
}

/**
 * Returns the pinned roots and all roots that follow them. Ignores a statement without both signatures, and one whose
 * earlier key no chain of statements connects to a pinned root. A thief of a pinned key can sign a statement too, so a
 * reader must not follow the statements of a compromised key.
 *
 * @param statements in any order; only the first MAX_SUCCESSIONS count
 */
export function followRootSuccessions(
  engine: CryptoEngine,
  pinned: Iterable<string>,
  statements: readonly RootSuccession[],
): ReadonlySet<string> {
  const successors = new Map<string, Set<string>>();
  for (const statement of statements.slice(0, MAX_SUCCESSIONS)) {
    if (!isSignedRootSuccession(engine, statement)) continue;
    const known = successors.get(statement.from) ?? new Set();
    successors.set(statement.from, known.add(statement.to));
  }
  const roots = new Set(pinned);
  // A Set iterates also over the members that the loop adds.
  for (const root of roots) for (const successor of successors.get(root) ?? []) roots.add(successor);
  return roots;
}
