import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type Revocation,
  RevocationSchema,
  type RevocationService,
  type RevokeTokenRequest,
} from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { DeputeError, ErrorReason, invalid, toTimestamp } from "@depute/core";
import { createRevocation, type RevocationEntry, verifyObject } from "@depute/dct";
import { follow } from "@depute/service";
import { assertMinter, type TokensContext } from "../context.ts";
import { REVOCATIONS_TOPIC } from "../revocation-reader.ts";
import type { Block } from "../rules/blocks.ts";
import { refusedToken } from "../rules/denials.ts";
import { fromEntry, scopeWord, toEntry, toSerialized } from "../rules/documents.ts";
import { type LoggedRevocation, lastSequence, readRevocations } from "../store/revocation-rows.ts";

const DEFAULT_PAGE_SIZE = 50;

/** RevocationService. */
export function revocationService(tokens: TokensContext): Required<ServiceImpl<typeof RevocationService>> {
  const { engine, store, bus, clock, timers, root, revocations } = tokens;
  return {
    async revokeToken(request, context) {
      const { principal: caller } = await tokens.identify(context);
      const entry = signedEntry(tokens, request, caller);
      const chain = chainOf(tokens, request);
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
      const entry = createRevocation(engine, revocationId, scopeWord(scope), root, clock.now());
      return { revocation: toRevocation(await revocations.recordOwn(entry, identity.principal)) };
    },

    async listRevocations({ afterSequence, pageSize }, context) {
      await tokens.identify(context);
      return store.read(async (tx) => {
        const logged = await readRevocations(tx, Number(afterSequence), pageSize || DEFAULT_PAGE_SIZE);
        return { revocations: logged.map(toRevocation), lastSequence: BigInt(await lastSequence(tx)) };
      });
    },

    async *watchRevocations({ afterSequence }, context) {
      await tokens.identify(context);
      const log = follow<LoggedRevocation, number>({
        read: (after, limit) => store.read((tx) => readRevocations(tx, after, limit)),
        position: ({ sequence }) => sequence,
        after: Number(afterSequence),
        wake: (listener) => bus.subscribe(REVOCATIONS_TOPIC, listener),
        pollMs: tokens.revocationPollMs,
        timers,
        signal: context.signal,
      });
      for await (const logged of log) yield { revocation: toRevocation(logged) };
    },
  };
}

/** @throws DeputeError INVALID_REQUEST, SIGNATURE_INVALID */
function signedEntry(tokens: TokensContext, { entry }: RevokeTokenRequest, caller: string): RevocationEntry {
  if (entry === undefined) throw invalid("entry", "is required");
  const document = toEntry(entry);
  const checked = verifyObject(tokens.engine, "revocation", document);
  if (checked.ok) return checked.object;
  const { problem, detail } = checked.refusal;
  if (problem === "malformed") throw invalid("entry", detail);
  deny(tokens, document, caller, "invalid_signature");
  throw new DeputeError(ErrorReason.SIGNATURE_INVALID, "the entry is not signed by revoked_by", {
    violations: [{ field: "entry.signature", description: "is not that of revoked_by over this entry" }],
  });
}

/** The blocks of the token that was sent along, if its chain holds. Throws DeputeError TOKEN_MALFORMED, TOKEN_DENIED. */
function chainOf({ judge }: TokensContext, { token }: RevokeTokenRequest): readonly Block[] {
  if (token === undefined) return [];
  const chain = judge.provenChain(toSerialized(token));
  if (!chain.ok) throw refusedToken(chain.denial);
  return chain.blocks;
}

function deny({ audit }: TokensContext, entry: RevocationEntry, caller: string, reason: string): void {
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

function toRevocation({ sequence, entry, recordTime }: LoggedRevocation): Revocation {
  return create(RevocationSchema, {
    sequence: BigInt(sequence),
    entry: fromEntry(entry),
    recordTime: toTimestamp(recordTime),
  });
}
