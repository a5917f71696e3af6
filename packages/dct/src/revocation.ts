import { canonicalJson, parseStrictJson } from "@depute/core";
import type { RevocationView } from "./context.ts";
import { TokenError } from "./denial.ts";
import type { CryptoEngine } from "./engine.ts";
import { signObject, verifyObject } from "./signed-object.ts";
import { formatTime } from "./time.ts";
import type { Keypair, RevocationEntry, SignedJSONToken } from "./types.ts";
import type { VerifiedBlock } from "./verify.ts";

/** A value, or why there is none (DelegateOS 4.2). */
export type Result<T, E> = { ok: true; value: T } | { ok: false; error: E };

/** Most entries in one RevocationList unless it is told otherwise. */
export const MAX_REVOCATIONS = 1_000_000;

/** A signed revocation of one block (DelegateOS 4.1). `now` is milliseconds since 1970. Throws TokenError. */
export function createRevocation(
  engine: CryptoEngine,
  revocationId: string,
  scope: RevocationEntry["scope"],
  revoker: Keypair,
  now: number = Date.now(),
): RevocationEntry {
  const body = { revocationId, revokedBy: revoker.principal.id, revokedAt: formatTime(now), scope };
  return signObject(engine, "revocation", body, revoker);
}

/** Whether a value is a revocation entry that its `revokedBy` has signed. Says nothing of whether he may. */
export function verifyRevocation(engine: CryptoEngine, entry: unknown): Result<RevocationEntry, string> {
  const result = verifyObject(engine, "revocation", entry);
  return result.ok ? { ok: true, value: result.object } : { ok: false, error: result.refusal.detail };
}

/**
 * Who may revoke a block of a chain: the signers of that block and of every block above it, and the block's own
 * delegatee, who gives up what he was given. `level` is 0 for the authority.
 */
export function rightfulRevokers(
  token: Pick<SignedJSONToken, "authority" | "attenuations">,
  level: number,
): string[] {
  const above = token.attenuations.slice(0, level);
  const block = above.at(-1) ?? token.authority;
  return [token.authority.issuer, ...above.map(({ attenuator }) => attenuator), block.delegatee];
}

/**
 * Whether an entry's revokedBy may revoke the block that it names, in a chain whose blocks were verified (as
 * verifyToken returns them). False when the block is not among them.
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
 * Revocations in memory (DelegateOS 4.2). Nothing is ever taken out again. Entries are kept by block and by revoker:
 * one from somebody who has no right to the block neither counts, nor stands in the way of one who has.
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

  /** How many entries there are. */
  get size(): number {
    return this.#size;
  }

  /**
   * Whether a block is revoked. With `rightful`, by one of these principals, as a verifier asks; without, by anyone
   * at all: asked without the chain there is no telling who may, and the safe answer is yes.
   */
  isRevoked(revocationId: string, rightful?: readonly string[]): boolean {
    const entries = this.#entries.get(revocationId);
    if (entries === undefined) return false;
    return rightful === undefined || rightful.some((principal) => entries.has(principal));
  }

  /**
   * Adds an entry whose signature holds. With the verified `blocks` of a chain that has the block, its revoker must
   * be entitled; without, the entry waits, and counts as soon as a presented chain shows that he was. The same entry
   * again changes nothing; of two scopes the wider stays.
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
    const entries = this.#entries.get(revocationId) ?? new Map<string, RevocationEntry>();
    const present = entries.get(revokedBy);
    if (present !== undefined && (present.scope === "chain" || scope === "block")) return done;
    if (present === undefined && this.#size >= this.#maxEntries) return { ok: false, error: "full" };
    if (present === undefined) this.#size++;
    entries.set(revokedBy, { revocationId, revokedBy, revokedAt, scope, signature });
    this.#entries.set(revocationId, entries);
    return done;
  }

  /** All entries, in the order in which their blocks came. */
  list(): RevocationEntry[] {
    return [...this.#entries.values()].flatMap((entries) =>
      [...entries.values()].map((entry) => ({ ...entry })),
    );
  }

  /** Canonical JSON of all entries. */
  toJSON(): string {
    return canonicalJson(this.list());
  }

  /**
   * A list from what toJSON wrote. Every signature is verified again. Throws TokenError at the first entry that does
   * not hold: a list with a gap would let a revoked token through.
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
    // Said below.
  }
  throw new TokenError({ type: "malformed_token", detail: "revocations: not a JSON array" });
}
