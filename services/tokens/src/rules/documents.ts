import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import { type AuthorizedScope, AuthorizedScopeSchema } from "@depute/contracts/delegateos/v0/delegation_pb";
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
import { type TokenBlock, TokenBlockSchema } from "@depute/contracts/depute/tokens/v1/token_verification_pb";
import { decodeBase64Url, toTimestamp } from "@depute/core";
import {
  type Attenuation as AttenuationBlock,
  type CryptoEngine,
  type RevocationEntry as Entry,
  parseTime,
  parseToken,
  revocationIds,
  type AuthorizedScope as Scope,
  type SerializedDCT as Serialized,
  type SignedJSONToken,
  type TokenInput,
} from "@depute/dct";
import { decode, encode } from "@depute/wire";
import type { Binding } from "./bindings.ts";

/** One block of a token, and the facts that its position in the chain determines. */
export interface Block {
  readonly revocationId: string;
  /** The id of the block above; empty for the authority block. */
  readonly parentId: string;
  readonly signer: string;
  readonly delegatee: string;
  readonly delegationId: string;
  readonly contractId: string;
  /** The effective expiry in epoch milliseconds: the earliest expiry of this block and the blocks above. */
  readonly expiresAt: number;
  /** The expiry that the block itself states, in epoch milliseconds; 0 if it states none. */
  readonly ownExpiry: number;
}

/** Returns a token's blocks, the authority block first. Does not verify the token. */
export function blocksOf(engine: CryptoEngine, token: SignedJSONToken): Block[] {
  const ids = revocationIds(engine, token);
  const { authority, attenuations } = token;
  let expiresAt = parseTime(authority.expiresAt) ?? 0;
  const at = (level: number) => ({ revocationId: ids[level] ?? "", parentId: ids[level - 1] ?? "" });
  const { issuer: signer, delegatee, delegationId, contractId } = authority;
  const ownExpiry = expiresAt;
  const blocks: Block[] = [{ ...at(0), signer, delegatee, delegationId, contractId, expiresAt, ownExpiry }];
  for (const [i, { attenuator, ...block }] of attenuations.entries()) {
    const ownExpiry = parseTime(block.expiresAt) ?? 0;
    expiresAt = Math.min(expiresAt, ownExpiry || expiresAt);
    blocks.push({
      ...at(i + 1),
      signer: attenuator,
      delegatee: block.delegatee,
      delegationId: block.delegationId,
      contractId: block.contractId,
      expiresAt,
      ownExpiry,
    });
  }
  return blocks;
}

/** Converts blocks to contract messages. */
export function toTokenBlocks(blocks: readonly Omit<Block, "parentId" | "ownExpiry">[]): TokenBlock[] {
  // Uses the timestamp of the block above again if the expiry is equal, as it is for most blocks.
  let written = { ms: Number.NaN, time: toTimestamp(0) };
  return blocks.map(({ revocationId, signer, delegatee, delegationId, contractId, expiresAt: ms }) => {
    if (ms !== written.ms) written = { ms, time: toTimestamp(ms) };
    const expireTime = written.time;
    return create(TokenBlockSchema, {
      revocationId,
      signer,
      delegatee,
      delegationId,
      contractId,
      expireTime,
    });
  });
}

/** Converts a scope to its contract message. */
export function toAuthorizedScope(scope: Scope): AuthorizedScope {
  const init: MessageInitShape<typeof AuthorizedScopeSchema> = {
    capabilities: scope.capabilities,
    remainingBudgetMicrocents: BigInt(scope.remainingBudgetMicrocents),
    chainDepth: BigInt(scope.chainDepth),
    maxChainDepth: BigInt(scope.maxChainDepth),
    contractId: scope.contractId,
    delegationId: scope.delegationId,
  };
  return create(AuthorizedScopeSchema, init);
}

/** Parses a token; undefined for input that is not a token. */
export function readTokenDocument(input: TokenInput): SignedJSONToken | undefined {
  const result = parseToken(input);
  return result.ok ? result.token : undefined;
}

/**
 * Signatures cover JSON documents, and RPCs carry protobuf messages. Only the functions of this file convert between
 * them. packages/dct checks whether a converted document is well-formed.
 */

/** Converts a protobuf message to its block document. */
export function toBlock(attenuation: Attenuation): AttenuationBlock {
  return encode(AttenuationSchema, attenuation) as unknown as AttenuationBlock;
}

/** Converts a block document that packages/dct has checked to its protobuf message. */
export function fromBlock(block: AttenuationBlock): Attenuation {
  const decoded = decode(AttenuationSchema, block);
  if (!decoded.ok) throw new Error(`a checked block has no message: ${decoded.error.message}`);
  return decoded.message;
}

/** Converts the message of a revocation entry to its document. */
export function toEntry(entry: RevocationEntry): Entry {
  return encode(RevocationEntrySchema, entry) as unknown as Entry;
}

/** Converts the document of a revocation entry to its message. */
export function fromEntry({ scope, ...entry }: Entry): RevocationEntry {
  return create(RevocationEntrySchema, { ...entry, scope: SCOPES[scope] });
}

const SCOPES = { block: RevocationScope.BLOCK, chain: RevocationScope.CHAIN } as const;

/** Returns the word that documents use for a revocation scope. */
export function scopeWord(scope: RevocationScope): Entry["scope"] {
  return scope === RevocationScope.CHAIN ? "chain" : "block";
}

/** Converts a serialized token to its message. */
export function fromSerialized(token: Serialized): SerializedDCT {
  return create(SerializedDCTSchema, token);
}

/** Converts a message to a serialized token. An absent message gives an empty token, which packages/dct denies. */
export function toSerialized(token: SerializedDCT | undefined): Serialized {
  return { token: token?.token ?? "", format: (token?.format ?? "") as Serialized["format"] };
}

/** Returns the binding that a message contains. Without a message, the binding restricts nothing. */
export function bindingOf(binding: TokenBinding | undefined): Binding {
  const { audiences = [], tenants = [], singleUse = false } = binding ?? {};
  return { audiences, tenants, singleUse };
}

/** Returns a duration in whole milliseconds; 0 if absent. */
export function spanMs(span: Duration | undefined): number {
  return span === undefined ? 0 : Math.trunc(durationMs(span));
}

/** Decodes a digest, key or signature that is stored as base64url. Returns no bytes for an empty or malformed text. */
export function bytesOfText(text: string | undefined): Uint8Array {
  return decodeBase64Url(text ?? "") ?? new Uint8Array();
}
