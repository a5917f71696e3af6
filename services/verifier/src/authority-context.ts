import type { HandlerContext } from "@connectrpc/connect";
import type { SerializedDCT as TokenMessage } from "@depute/contracts/delegateos/v0/token_pb";
import type { DelegationRecord } from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import { DeputeError, ErrorReason, fromTimestamp } from "@depute/core";
import { parseToken, type RevocationView, revocationIds, type SerializedDCT, SJT_FORMAT } from "@depute/dct";
import { fromConnectError, ownOptions } from "@depute/service";
import type { CollectedNode } from "./attestation-tree.ts";
import type { Breath } from "./breath.ts";
import { CURSOR } from "./revocation-follower.ts";
import { type AuthorityContext, type RecordedDelegation, speaksForItself } from "./rules/signer-authority.ts";
import { readCursor } from "./store/cursors.ts";
import { type RevocationRow, revocationsOf } from "./store/revocations.ts";
import { lineageOf } from "./store/sub-contracts.ts";
import type { Verifier } from "./verifier.ts";

/** Delegations that are asked for at once. */
const AT_ONCE = 32;

/** Revocations that may not be taken over yet when signers are judged. */
const MAX_BEHIND = 1000;

/**
 * What is needed to judge the signers of a tree: whom the tokens service trusts, what it has revoked up to now, and the
 * tokens that were sent along.
 *
 * @throws DeputeError DEPENDENCY_UNAVAILABLE
 */
export async function loadAuthority(
  verifier: Verifier,
  nodes: readonly CollectedNode[],
  messages: readonly TokenMessage[],
  context: HandlerContext,
  breathe: Breath,
): Promise<AuthorityContext> {
  const { store, engine, keypair } = verifier;
  const tokens = new Map<string, SerializedDCT>();
  const blocks = new Set<string>();
  for (const { token } of messages) {
    const parsed = parseToken({ token, format: SJT_FORMAT });
    if (!parsed.ok) continue;
    const last = parsed.token.attenuations.at(-1) ?? parsed.token.authority;
    tokens.set(last.delegationId, { token, format: SJT_FORMAT });
    for (const id of revocationIds(engine, parsed.token)) blocks.add(id);
    await breathe();
  }
  const contractIds = new Set(nodes.map(({ attestation }) => attestation.contractId));
  const lineages = new Map<string, string[]>();
  for (const id of contractIds) lineages.set(id, await store.read((tx) => lineageOf(tx, id)));
  const unshown = new Set<string>();
  for (const { attestation } of nodes) {
    const { contract } = await verifier.contracts.get(attestation.contractId);
    if (
      !speaksForItself(attestation, contract, keypair.principal.id) &&
      !tokens.has(attestation.delegationId)
    ) {
      unshown.add(attestation.delegationId);
    }
  }
  const delegations = await recorded(verifier, [...unshown], context);
  for (const { revocationId } of [...delegations.values()].flat()) blocks.add(revocationId);
  const known = blocks.size === 0 ? nothing : await revoked(verifier, blocks, context);
  return {
    verifier: keypair.principal.id,
    trustedRoots: known.roots,
    tokens,
    delegations,
    wasRevoked: (revocationId, time) =>
      (known.revocations.get(revocationId) ?? []).some((row) => row.time <= time),
    revokedBy: (time) => viewAt(known.revocations, time),
    lineageOf: (contractId) => lineages.get(contractId) ?? [],
  };
}

/** What the tokens service has recorded of delegations. One that it does not know, or knows twice, is left out. */
async function recorded(
  { delegations, clock }: Verifier,
  ids: readonly string[],
  context: HandlerContext,
): Promise<Map<string, RecordedDelegation[]>> {
  const found = new Map<string, RecordedDelegation[]>();
  const options = ownOptions(context, clock);
  const read = async (delegationId: string) => {
    const answer = await delegations.getDelegationChain({ delegationId }, options).catch(orNone);
    if (answer !== undefined) found.set(delegationId, answer.delegations.map(recordOf));
  };
  for (let at = 0; at < ids.length; at += AT_ONCE) await Promise.all(ids.slice(at, at + AT_ONCE).map(read));
  return found;
}

function orNone(error: unknown): undefined {
  const { reason } = fromConnectError(error);
  if (reason === ErrorReason.DELEGATION_NOT_FOUND || reason === ErrorReason.DELEGATION_AMBIGUOUS) return;
  throw error;
}

function recordOf({ to, contractId, revocationId, expireTime }: DelegationRecord): RecordedDelegation {
  // One whose end is not told has ended.
  const expiry = expireTime === undefined ? 0 : fromTimestamp(expireTime);
  return { to, contractId, revocationId, expiry };
}

interface Known {
  roots: ReadonlySet<string>;
  /** By block. */
  revocations: ReadonlyMap<string, readonly RevocationRow[]>;
}

const nothing: Known = { roots: new Set(), revocations: new Map() };

async function revoked(
  { store, tokens, revocations, clock }: Verifier,
  blocks: ReadonlySet<string>,
  context: HandlerContext,
): Promise<Known> {
  const options = ownOptions(context, clock);
  const { trustedRoots } = await tokens.getIssuer({}, options);
  const { rows, cursor } = await store.read(async (tx) => {
    const rows: RevocationRow[] = [];
    for (const id of blocks) rows.push(...(await revocationsOf(tx, id)));
    return { rows, cursor: await readCursor(tx, CURSOR) };
  });
  // What was recorded there and has not arrived here yet counts as well.
  const rest = await revocations.listRevocations(
    { afterSequence: BigInt(cursor), pageSize: MAX_BEHIND },
    options,
  );
  if (rest.lastSequence > BigInt(cursor + MAX_BEHIND)) {
    throw new DeputeError(ErrorReason.DEPENDENCY_UNAVAILABLE, "revocations are still being read", {
      metadata: { service: "tokens" },
    });
  }
  for (const { entry, recordTime } of rest.revocations) {
    if (entry === undefined || !blocks.has(entry.revocationId)) continue;
    const time = recordTime === undefined ? 0 : fromTimestamp(recordTime);
    rows.push({ revocationId: entry.revocationId, revokedBy: entry.revokedBy, time });
  }
  return { roots: new Set(trustedRoots), revocations: Map.groupBy(rows, ({ revocationId }) => revocationId) };
}

function viewAt(revocations: Known["revocations"], time: number): RevocationView {
  return {
    isRevoked: (revocationId, rightful) =>
      (revocations.get(revocationId) ?? []).some(
        (row) => row.time <= time && rightful.includes(row.revokedBy),
      ),
  };
}
