import { create } from "@bufbuild/protobuf";
import {
  type RevocationEntry,
  RevocationEntrySchema,
  RevocationScope,
} from "@depute/contracts/delegateos/v0/revocation_pb";
import {
  type Attenuation,
  AttenuationSchema,
  type SerializedDCT,
  SerializedDCTSchema,
} from "@depute/contracts/delegateos/v0/token_pb";
import type { TokenBinding } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import type {
  Attenuation as Block,
  RevocationEntry as Entry,
  SerializedDCT as Serialized,
} from "@depute/dct";
import { decode, encode } from "@depute/wire";
import type { Binding } from "./bindings.ts";

/**
 * What is signed is a document, what travels over RPC a message; the wire codec is the one place that knows how the
 * two belong together. A document made here may still be malformed: packages/dct checks it.
 */

/** The block that a message describes. */
export function toBlock(attenuation: Attenuation): Block {
  return encode(AttenuationSchema, attenuation) as unknown as Block;
}

/** The message of a block that packages/dct has checked. */
export function fromBlock(block: Block): Attenuation {
  const decoded = decode(AttenuationSchema, block);
  if (!decoded.ok) throw new Error(`a checked block has no message: ${decoded.error.message}`);
  return decoded.message;
}

/** The signed entry that a message describes. */
export function toEntry(entry: RevocationEntry): Entry {
  return encode(RevocationEntrySchema, entry) as unknown as Entry;
}

/** The message of a signed entry. */
export function fromEntry({ scope, ...entry }: Entry): RevocationEntry {
  return create(RevocationEntrySchema, { ...entry, scope: SCOPES[scope] });
}

const SCOPES = { block: RevocationScope.BLOCK, chain: RevocationScope.CHAIN } as const;

/** The word of a scope. */
export function scopeWord(scope: RevocationScope): Entry["scope"] {
  return scope === RevocationScope.CHAIN ? "chain" : "block";
}

/** The message of a serialised token. */
export function fromSerialized(token: Serialized): SerializedDCT {
  return create(SerializedDCTSchema, token);
}

/** A token as it was presented, as packages/dct reads it: what is no token is denied there. */
export function toSerialized(token: SerializedDCT | undefined): Serialized {
  return { token: token?.token ?? "", format: (token?.format ?? "") as Serialized["format"] };
}

/** Where a block counts; anywhere without a binding. */
export function bindingOf(binding: TokenBinding | undefined): Binding {
  const { audiences = [], tenants = [], singleUse = false } = binding ?? {};
  return { audiences, tenants, singleUse };
}
