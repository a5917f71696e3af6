import { encodeHex, type IdRule, RELAXED_ID } from "@depute/core";
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
 * A new identifier: the prefix and 48 random bits. Never a key for state or for security: two of them meet by chance
 * after some 16 million. A block's revocation id, 256 bits, is what tells blocks apart.
 */
export function newId(kind: IdKind): string {
  for (;;) {
    const bytes = crypto.getRandomValues(new Uint8Array(6));
    const id = `${kind}_${encodeHex(bytes)}`;
    if (id !== ROOT_DELEGATION_ID) return id;
  }
}
