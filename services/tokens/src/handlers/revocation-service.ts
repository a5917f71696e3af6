import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type KeyRevocation,
  KeyRevocationSchema,
  type Revocation,
  RevocationSchema,
  type RevocationService,
  type RevokeTokenRequest,
} from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import {
  DeputeError,
  decodePageToken,
  ErrorReason,
  encodeBase64Url,
  encodePageToken,
  formatTime,
  fromTimestamp,
  invalid,
  parseTime,
  toTimestamp,
} from "@depute/core";
import {
  createRevocation,
  type Keypair,
  parsePrincipal,
  type RevocationEntry,
  verifyObject,
} from "@depute/dct";
import { follow } from "@depute/service";
import { assertMinter, type TokensContext } from "../context.ts";
import { REVOCATIONS_TOPIC } from "../revocation-reader.ts";
import { refusedToken } from "../rules/denials.ts";
import type { Block } from "../rules/documents.ts";
import { bytesOfText, fromEntry, scopeWord, toEntry, toSerialized } from "../rules/documents.ts";
import {
  isSignedKeyRevocation,
  type KeyStatement,
  keptBefore,
  signKeyRevocation,
} from "../rules/key-revocation.ts";
import { signersOf } from "../store/block-rows.ts";
import { type LogPlace, lastPlace, readLog } from "../store/revocation-rows.ts";

const DEFAULT_PAGE_SIZE = 50;

/** Handles the calls of RevocationService. */
export function revocationService(tokens: TokensContext): Required<ServiceImpl<typeof RevocationService>> {
  const { engine, store, bus, clock, timers, roots, revocations } = tokens;
  return {
    async revokeToken(request, context) {
      const { principal: caller } = await tokens.identify(context);
      const entry = signedEntry(tokens, request, caller);
      const chain = await chainOf(tokens, request);
      try {
        const logged = await revocations.record(entry, caller, chain);
        return logged === undefined ? { pending: true } : { revocation: toRevocation(logged) };
      } catch (error) {
        if (error instanceof DeputeError && error.reason === ErrorReason.NOT_AUTHORIZED_TO_REVOKE) {
          deny(tokens, entry, caller, "not_authorized_to_revoke");
        }
        throw error;
      }
    },

    async revokeMintedToken({ revocationId, scope }, context) {
      const identity = await tokens.identify(context);
      assertMinter(tokens, identity, "revoke", [revocationId]);
      const root = await rootOfBlock(tokens, revocationId);
      const entry = createRevocation(engine, revocationId, scopeWord(scope), root, clock.now());
      return { revocation: toRevocation(await revocations.recordOwn(entry, identity.principal)) };
    },

    async revokeKey({ revocation }, context) {
      const { principal: caller } = await tokens.identify(context);
      const statement = signedStatement(tokens, revocation, caller);
      const place = await tokens.keyRevoker.record(statement, caller);
      return place === undefined ? { pending: true } : { revocation: toRevocation(place) };
    },

    async revokeKeyAsRoot({ key, keepBefore }, context) {
      const identity = await tokens.identify(context);
      assertMinter(tokens, identity, "revoke");
      const details = {
        key,
        keepBefore: keepBefore === undefined ? 0 : fromTimestamp(keepBefore),
        now: clock.now(),
      };
      if (parsePrincipal(key) === undefined) throw invalid("key", "is not an Ed25519 public key");
      const statement = signKeyRevocation(engine, details, roots.current());
      const place = await tokens.keyRevoker.record(statement, identity.principal);
      return place === undefined ? {} : { revocation: toRevocation(place) };
    },

    async getRevocationCheckpoint(_, context) {
      await tokens.identify(context);
      const { sequence, rootChange, ...checkpoint } = await tokens.checkpoint();
      const { head, signer, signedAt, signature, rootChangeSignature } = checkpoint;
      return {
        checkpoint: {
          ...{ sequence: BigInt(sequence), head, signer },
          signTime: toTimestamp(parseTime(signedAt) ?? 0),
          signature: bytesOfText(signature),
          ...{ rootChange: BigInt(rootChange), rootChangeSignature: bytesOfText(rootChangeSignature) },
        },
      };
    },

    async listRevocations({ afterSequence, pageSize, pageToken }, context) {
      await tokens.identify(context);
      const filters = { list: "revocations", afterSequence: String(afterSequence) };
      const after = Number(decodePageToken(pageToken, filters)?.[0] ?? afterSequence);
      return store.read(async (tx) => {
        const places = await readLog(tx, after, pageSize || DEFAULT_PAGE_SIZE);
        const { sequence } = await lastPlace(tx);
        const last = places.at(-1)?.sequence ?? sequence;
        return {
          revocations: places.filter(isSaying).map(toRevocation),
          nextPageToken: last < sequence ? encodePageToken([last], filters) : "",
          lastSequence: BigInt(sequence),
        };
      });
    },

    async *watchRevocations({ afterSequence, sendStart }, context) {
      await tokens.identify(context);
      if (sendStart) yield { sequence: afterSequence };
      const log = follow<LogPlace, number>({
        read: (after, limit) => store.read((tx) => readLog(tx, after, limit)),
        position: ({ sequence }) => sequence,
        after: Number(afterSequence),
        wake: (listener) => bus.subscribe(REVOCATIONS_TOPIC, listener),
        pollMs: tokens.revocationPollMs,
        timers,
        signal: context.signal,
      });
      for await (const place of log) {
        if (isSaying(place)) yield { sequence: BigInt(place.sequence), revocation: toRevocation(place) };
      }
    },
  };
}

/**
 * Verifies the signed entry in a request.
 *
 * @throws DeputeError INVALID_REQUEST, SIGNATURE_INVALID; LIMIT_EXCEEDED if the audit log has no room
 */
function signedEntry(tokens: TokensContext, { entry }: RevokeTokenRequest, caller: string): RevocationEntry {
  if (entry === undefined) throw invalid("entry", "is required");
  const document = toEntry(entry);
  const checked = verifyObject(tokens.engine, "revocation", document);
  if (checked.ok) return checked.object;
  const { problem, detail } = checked.refusal;
  if (problem === "malformed") throw invalid("entry", detail);
  deny(tokens, document, caller, "invalid_signature");
  throw new DeputeError(ErrorReason.SIGNATURE_INVALID, "the entry is not signed by revoked_by", {
    violations: [
      { field: "entry.signature", description: "must be the signature of revoked_by over this entry" },
    ],
  });
}

/**
 * Returns the blocks of the token in the request; empty without a token.
 *
 * @throws DeputeError TOKEN_MALFORMED, TOKEN_DENIED if the chain is invalid
 */
async function chainOf({ chains }: TokensContext, { token }: RevokeTokenRequest): Promise<readonly Block[]> {
  if (token === undefined) return [];
  const chain = await chains.proven(toSerialized(token));
  if (!chain.ok) throw refusedToken(chain.denial);
  return chain.blocks;
}

/**
 * Returns the root key that signed a recorded block, and otherwise the key that signs now.
 *
 * @throws DeputeError KEY_NOT_USABLE if that root is retired
 */
async function rootOfBlock({ store, roots }: TokensContext, revocationId: string): Promise<Keypair> {
  return store.read(async (tx) => {
    for (const signer of await signersOf(tx, revocationId)) {
      const root = await roots.signerIn(tx, signer);
      if (root !== undefined) return root;
    }
    return roots.currentIn(tx);
  });
}

function deny(
  { audit }: TokensContext,
  entry: Pick<RevocationEntry, "revokedBy" | "revocationId">,
  caller: string,
  reason: string,
): void {
  const { revokedBy, revocationId } = entry;
  audit.assertRoom();
  audit.add({
    kind: "revoke",
    caller,
    principal: revokedBy,
    decision: "denied",
    reason,
    blocks: [revocationId],
  });
}

/**
 * Verifies the signed key revocation in a request.
 *
 * @throws DeputeError INVALID_REQUEST, SIGNATURE_INVALID; LIMIT_EXCEEDED if the audit log has no room
 */
function signedStatement(
  tokens: TokensContext,
  sent: KeyRevocation | undefined,
  caller: string,
): KeyStatement {
  if (sent === undefined) throw invalid("revocation", "is required");
  const { key, keepBefore, revokedBy, revokeTime, signature } = sent;
  if (keepBefore === undefined) throw invalid("revocation.keep_before", "is required");
  if (revokeTime === undefined) throw invalid("revocation.revoke_time", "is required");
  const statement = {
    ...{ key, revokedBy, signature: encodeBase64Url(signature) },
    keepBefore: formatTime(fromTimestamp(keepBefore)),
    revokedAt: formatTime(fromTimestamp(revokeTime)),
  };
  if (revokedBy !== key) throw invalid("revocation.revoked_by", "must be the key itself");
  if (keptBefore(statement) === undefined) throw invalid("revocation.keep_before", "is not a time");
  if (isSignedKeyRevocation(tokens.engine, statement)) return statement;
  deny(tokens, { revokedBy, revocationId: key }, caller, "invalid_signature");
  throw new DeputeError(ErrorReason.SIGNATURE_INVALID, "the statement is not signed by the key", {
    violations: [
      { field: "revocation.signature", description: "must be the key's signature over this statement" },
    ],
  });
}

function isSaying({ entry, key }: LogPlace): boolean {
  return entry !== undefined || key !== undefined;
}

/** Converts an entry of the log to its contract message. */
export function toRevocation({ sequence, entry, key, head, recordTime }: LogPlace): Revocation {
  return create(RevocationSchema, {
    sequence: BigInt(sequence),
    ...(entry !== undefined && { entry: fromEntry(entry) }),
    ...(key !== undefined && { key: toKeyRevocation(key) }),
    head,
    recordTime: toTimestamp(recordTime),
  });
}

/** Converts a key revocation to its contract message. The signed text has its times in RFC 3339. */
export function toKeyRevocation({
  key,
  keepBefore,
  revokedBy,
  revokedAt,
  signature,
}: KeyStatement): KeyRevocation {
  return create(KeyRevocationSchema, {
    ...{ key, revokedBy, signature: bytesOfText(signature) },
    keepBefore: toTimestamp(parseTime(keepBefore) ?? 0),
    revokeTime: toTimestamp(parseTime(revokedAt) ?? 0),
  });
}
