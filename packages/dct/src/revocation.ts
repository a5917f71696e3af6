import { canonicalJson, parseStrictJson, systemClock } from "@depute/core";
import type { RevocationView } from "./context.ts";
import { TokenError } from "./denial.ts";
import type { CryptoEngine } from "./engine.ts";
import { signObject, verifyObject } from "./signed-object.ts";
import { formatTime } from "./time.ts";
import type { Attenuation, Keypair, RevocationEntry, SignedJSONToken, VerifiedBlock } from "./types.ts";

/** A value, or the reason of the failure (DelegateOS 4.2). */
export type Result<T, E> = { ok: true; value: T } | { ok: false; error: E };

/** Default maximum of entries in one RevocationList. */
export const MAX_REVOCATIONS = 1_000_000;

/**
 * Returns a signed revocation of one block (DelegateOS 4.1). `now` is milliseconds since 1970. Throws TokenError
 * for a malformed revocation id, and for a private key that is not the revoker's. Throws RangeError for a time
 * outside the years 0 to 9999.
 */
export function createRevocation(
  engine: CryptoEngine,
  revocationId: string,
  scope: RevocationEntry["scope"],
  revoker: Keypair,
  now: number = systemClock.now(),
): RevocationEntry {
  const body = { revocationId, revokedBy: revoker.principal.id, revokedAt: formatTime(now), scope };
  return signObject(engine, "revocation", body, revoker);
}

/**
 * Whether a value is a revocation entry with a valid signature of its `revokedBy`. Does not check whether
 * `revokedBy` may revoke the block.
 */
export function verifyRevocation(engine: CryptoEngine, entry: unknown): Result<RevocationEntry, string> {
  const result = verifyObject(engine, "revocation", entry);
  return result.ok ? { ok: true, value: result.object } : { ok: false, error: result.refusal.detail };
}

/**
 * Returns the principals that may revoke a block of a chain: the signers of that block and of every block above it, and
 * the block's delegatee. `level` is 0 for the authority.
 */
export function rightfulRevokers(
  token: Pick<SignedJSONToken, "authority" | "attenuations">,
  level: number,
): string[] {
  const { authority, attenuations } = token;
  const rightful = [authority.issuer];
  let { delegatee } = authority;
  for (let i = 0; i < Math.min(level, attenuations.length); i++) {
    const block = attenuations[i] as Attenuation;
    rightful.push(block.attenuator);
    delegatee = block.delegatee;
  }
  rightful.push(delegatee);
  return rightful;
}

/**
 * Whether an entry's revokedBy may revoke the block that the entry names. The block must be among the verified blocks
 * of a chain, as verifyToken returns them; otherwise the result is false.
 */
export function mayRevoke(
  entry: Pick<RevocationEntry, "revocationId" | "revokedBy">,
  blocks: readonly Pick<VerifiedBlock, "revocationId" | "signer" | "delegatee">[],
): boolean {
  const level = blocks.findIndex(({ revocationId }) => revocationId === entry.revocationId);
  if (level < 0) return false;
  const signers = blocks.slice(0, level + 1).map(({ signer }) => signer);
  return signers.includes(entry.revokedBy) || blocks[level]?.delegatee === entry.revokedBy;
}

/**
 * Revocations in memory (DelegateOS 4.2). The list never removes an entry. It stores entries by block and by
 * revoker. So an entry by a principal that is not a rightful revoker has no effect, and replaces no valid entry.
 */
export class RevocationList implements RevocationView {
  readonly #engine: CryptoEngine;
  readonly #maxEntries: number;
  readonly #entries = new Map<string, Map<string, RevocationEntry>>();
  #size = 0;

  constructor(engine: CryptoEngine, maxEntries: number = MAX_REVOCATIONS) {
    this.#engine = engine;
    this.#maxEntries = maxEntries;
  }

  /** Returns the number of entries. */
  get size(): number {
    return this.#size;
  }

  /**
   * Whether a block is revoked. With `rightful`, only entries by these principals count; a verifier must pass
   * `rightful`. Without `rightful`, any principal's entry counts. Only the chain shows whether a revoker is rightful,
   * and true is the safe result.
   */
  isRevoked(revocationId: string, rightful?: readonly string[]): boolean {
    const entries = this.#entries.get(revocationId);
    if (entries === undefined) return false;
    return rightful === undefined || rightful.some((principal) => entries.has(principal));
  }

  /**
   * Adds an entry with a valid signature. With the verified `blocks` of the block's chain, the method refuses an
   * entry whose revoker is not rightful. Without `blocks`, the entry counts only for a presented chain that shows a
   * rightful revoker. A repeated entry changes nothing; of two scopes, the wider one stays. A full list refuses a
   * new entry.
   */
  add(
    entry: RevocationEntry,
    blocks?: readonly Pick<VerifiedBlock, "revocationId" | "signer" | "delegatee">[],
  ): Result<void, string> {
    const verified = verifyRevocation(this.#engine, entry);
    if (!verified.ok) return verified;
    if (blocks !== undefined && !mayRevoke(entry, blocks))
      return { ok: false, error: "not_authorized_to_revoke" };
    const { revocationId, revokedBy, revokedAt, scope, signature } = verified.value;
    const existing = this.#entries.get(revocationId) ?? new Map<string, RevocationEntry>();
    const presentRevocation = existing.get(revokedBy);
    if (presentRevocation !== undefined && (presentRevocation.scope === "chain" || scope === "block"))
      return done;
    if (presentRevocation === undefined && this.#size >= this.#maxEntries)
      return { ok: false, error: "full" };
    if (presentRevocation === undefined) this.#size++;
    existing.set(revokedBy, { revocationId, revokedBy, revokedAt, scope, signature });
    this.#entries.set(revocationId, existing);
    return done;
  }

  /** Returns all entries, in the order in which their blocks were first revoked. */
  list(): RevocationEntry[] {
    return [...this.#entries.values()].flatMap((entries) =>
      [...entries.values()].map((entry) => ({ ...entry })),
    );
  }

  /** Returns the canonical JSON of all entries. */
  toJSON(): string {
    return canonicalJson(this.list());
  }

  /**
   * Reads a list from the text of toJSON. Every signature is verified again. Throws TokenError for a text that is
   * no JSON array, for more than `maxEntries`, and at the first invalid entry: a list with a gap would accept a
   * revoked token.
   */
  static fromJSON(json: string, engine: CryptoEngine, maxEntries: number = MAX_REVOCATIONS): RevocationList {
    const list = new RevocationList(engine, maxEntries);
    for (const [i, entry] of parseList(json).entries()) {
      const added = list.add(entry as RevocationEntry);
      if (!added.ok)
        throw new TokenError({ type: "malformed_token", detail: `revocations[${i}]: ${added.error}` });
    }
    return list;
  }
}

const done: Result<void, string> = { ok: true, value: undefined };

function parseList(json: string): unknown[] {
  try {
    const value = parseStrictJson(json, { maxValues: Number.POSITIVE_INFINITY });
    if (Array.isArray(value)) return value;
  } catch {
    // The text is not JSON. The next statement reports this fault.
  }
  throw new TokenError({ type: "malformed_token", detail: "revocations: not a JSON array" });
}
