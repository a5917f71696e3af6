import type { HandlerContext } from "@connectrpc/connect";
import type { SerializedDCT as TokenMessage } from "@depute/contracts/delegateos/v0/token_pb";
import type { DelegationRecord } from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import { DeputeError, ErrorReason, fromTimestamp } from "@depute/core";
import { parseToken, type RevocationView, revocationIds, type SerializedDCT, SJT_FORMAT } from "@depute/dct";
import { fromConnectError, ownOptions } from "@depute/service";
import type { CollectedNode } from "./attestation-tree.ts";
import { onEventLoop } from "./on-event-loop.ts";
import { CURSOR } from "./revocation-follower.ts";
import {
  type AuthorityContext,
  needsNoDelegation,
  type RecordedDelegation,
} from "./rules/signer-authority.ts";
import { readCursor } from "./store/cursors.ts";
import { type RevocationRow, revocationsOf } from "./store/revocations.ts";
import { lineageOf } from "./store/sub-contracts.ts";
import type { Verifier } from "./verifier.ts";
import type { YieldToEventLoop } from "./yield-to-event-loop.ts";

/** Maximum number of concurrent reads of delegations. */
const AT_ONCE = 32;

/**
 * Maximum lag of RevocationFollower behind the revocation log, in entries. Beyond this lag, the verifier service
 * refuses to check signers.
 */
const MAX_BEHIND = 1000;

/**
 * Reads the data that decides whether the signers of a tree had authority: trusted roots, current revocations, recorded
 * delegations, and the request's tokens.
 *
 * @throws DeputeError DEPENDENCY_UNAVAILABLE, CONTRACT_NOT_FOUND, LIMIT_EXCEEDED if the caller has used its quota of
 * processor time; the errors of the tokens service
 */
export async function loadAuthority(
  verifier: Verifier,
  nodes: readonly CollectedNode[],
  messages: readonly TokenMessage[],
  context: HandlerContext,
  yieldToEventLoop: YieldToEventLoop,
): Promise<AuthorityContext> {
  const { store, engine, keypair } = verifier;
  const tokens = new Map<string, SerializedDCT>();
  const blocks = new Set<string>();
  const rootBlocks: RootBlock[] = [];
  for (const { token } of messages) {
    const parsed = onEventLoop(() => parseToken({ token, format: SJT_FORMAT }));
    if (!parsed.ok) continue;
    const last = parsed.token.attenuations.at(-1) ?? parsed.token.authority;
    tokens.set(last.delegationId, { token, format: SJT_FORMAT });
    const ids = revocationIds(engine, parsed.token);
    for (const id of ids) blocks.add(id);
    const { issuer, delegationId } = parsed.token.authority;
    rootBlocks.push({ issuer, delegationId, revocationId: ids[0] ?? "", leaf: last.delegationId });
    await yieldToEventLoop();
  }
  const contractIds = new Set(nodes.map(({ attestation }) => attestation.contractId));
  const lineages = new Map<string, string[]>();
  for (const id of contractIds) lineages.set(id, await store.read((tx) => lineageOf(tx, id)));
  const withoutToken = new Set<string>();
  for (const { attestation } of nodes) {
    const { contract } = await verifier.contracts.get(attestation.contractId);
    if (
      !needsNoDelegation(attestation, contract, keypair.principal.id) &&
      !tokens.has(attestation.delegationId)
    ) {
      withoutToken.add(attestation.delegationId);
    }
  }
  const delegations = await readRecordedDelegations(verifier, [...withoutToken], context);
  for (const { revocationId } of [...delegations.values()].flat()) blocks.add(revocationId);
  const knownRevocations =
    blocks.size === 0 ? NO_REVOCATIONS : await readRevocations(verifier, blocks, context);
  const retired = new Set(knownRevocations.retired.map(({ principal }) => principal));
  const ofRetired = rootBlocks.filter(({ issuer }) => retired.has(issuer));
  const rootBlockTimes = await readRootBlockTimes(verifier, ofRetired, context);
  for (const [delegationId, [root]] of delegations)
    if (root !== undefined && retired.has(root.from)) rootBlockTimes.set(delegationId, root.createTime);
  return {
    verifier: keypair.principal.id,
    rootBlockTimes,
    rootsAt: (time) => rootsAt(knownRevocations, time),
    tokens,
    delegations,
    wasRevoked: (revocationId, time) =>
      (knownRevocations.revocations.get(revocationId) ?? []).some((row) => row.time <= time),
    revokedBy: (time) => viewAt(knownRevocations.revocations, time),
    lineageOf: (contractId) => lineages.get(contractId) ?? [],
  };
}

/**
 * Reads the delegations that the tokens service has recorded, by id. Omits an id that is unknown, or that several
 * delegations have.
 */
async function readRecordedDelegations(
  { delegations, clock }: Verifier,
  ids: readonly string[],
  context: HandlerContext,
): Promise<Map<string, RecordedDelegation[]>> {
  const delegationsByBlock = new Map<string, RecordedDelegation[]>();
  const options = ownOptions(context, clock);
  const read = async (delegationId: string) => {
    const answer = await delegations.getDelegationChain({ delegationId }, options).catch(undefinedIfUnknown);
    if (answer !== undefined) delegationsByBlock.set(delegationId, answer.delegations.map(recordOf));
  };
  for (let at = 0; at < ids.length; at += AT_ONCE) await Promise.all(ids.slice(at, at + AT_ONCE).map(read));
  return delegationsByBlock;
}

/** The root block of a token in the request. */
interface RootBlock {
  readonly issuer: string;
  readonly delegationId: string;
  readonly revocationId: string;
  /** The delegation id of the token's last block. */
  readonly leaf: string;
}

/**
 * Reads when the tokens service recorded root blocks, by the delegation id of the token's last block. The time of a block
 * without a record is Infinity. The tokens service records no block of a root that has retired.
 */
async function readRootBlockTimes(
  { delegations, clock }: Verifier,
  blocks: readonly RootBlock[],
  context: HandlerContext,
): Promise<Map<string, number>> {
  const times = new Map<string, number>();
  const options = ownOptions(context, clock);
  const read = async ({ delegationId, revocationId, leaf }: RootBlock) => {
    const answer = await delegations
      .getDelegationChain({ delegationId, revocationId }, options)
      .catch(undefinedIfUnknown);
    const [root] = answer?.delegations.map(recordOf) ?? [];
    times.set(leaf, root?.revocationId === revocationId ? root.createTime : Number.POSITIVE_INFINITY);
  };
  for (let at = 0; at < blocks.length; at += AT_ONCE)
    await Promise.all(blocks.slice(at, at + AT_ONCE).map(read));
  return times;
}

function undefinedIfUnknown(error: unknown): undefined {
  const { reason } = fromConnectError(error);
  if (reason === ErrorReason.DELEGATION_NOT_FOUND || reason === ErrorReason.DELEGATION_AMBIGUOUS) return;
  throw error;
}

function recordOf({
  delegator: from,
  delegatee: to,
  contractId,
  revocationId,
  expireTime,
  createTime: recordTime,
}: DelegationRecord): RecordedDelegation {
  // A record without an expiry counts as expired, and one without a time as the newest.
  const expiry = expireTime === undefined ? 0 : fromTimestamp(expireTime);
  const createTime = recordTime === undefined ? Number.POSITIVE_INFINITY : fromTimestamp(recordTime);
  return { from, to, contractId, revocationId, expiry, createTime };
}

interface RevocationData {
  roots: ReadonlySet<string>;
  /** The platform's retired roots, with the times from which they are not trusted, in epoch milliseconds. */
  retired: readonly { principal: string; retireTime: number }[];
  /** Records of revocations, grouped by the revocation id of the block. */
  revocations: ReadonlyMap<string, readonly RevocationRow[]>;
}

const NO_REVOCATIONS: RevocationData = { roots: new Set(), retired: [], revocations: new Map() };

/** Returns the roots that were trusted at a time. */
function rootsAt({ roots, retired }: RevocationData, time: number): ReadonlySet<string> {
  const then = retired.filter(({ retireTime }) => time < retireTime);
  return then.length === 0 ? roots : new Set([...roots, ...then.map(({ principal }) => principal)]);
}

async function readRevocations(
  { store, tokens, revocations, clock }: Verifier,
  blocks: ReadonlySet<string>,
  context: HandlerContext,
): Promise<RevocationData> {
  const options = ownOptions(context, clock);
  const { trustedRoots, retiredRoots } = await tokens.getIssuer({}, options);
  const { rows, cursor } = await store.read(async (tx) => {
    const rows: RevocationRow[] = [];
    for (const id of blocks) rows.push(...(await revocationsOf(tx, id)));
    return { rows, cursor: await readCursor(tx, CURSOR) };
  });
  // Reads the revocations that RevocationFollower has not copied yet.
  const rest = await revocations.listRevocations(
    { afterSequence: BigInt(cursor), pageSize: MAX_BEHIND },
    options,
  );
  if (rest.lastSequence > BigInt(cursor + MAX_BEHIND)) {
    throw new DeputeError(
      ErrorReason.DEPENDENCY_UNAVAILABLE,
      "the verifier has not read all revocations yet; try again later",
      {
        metadata: { service: "tokens" },
      },
    );
  }
  for (const { entry, recordTime } of rest.revocations) {
    if (entry === undefined || !blocks.has(entry.revocationId)) continue;
    const time = recordTime === undefined ? 0 : fromTimestamp(recordTime);
    rows.push({ revocationId: entry.revocationId, revokedBy: entry.revokedBy, time });
  }
  const retired = retiredRoots.map(({ principal, retireTime }) => ({
    principal,
    retireTime: retireTime === undefined ? 0 : fromTimestamp(retireTime),
  }));
  return {
    roots: new Set(trustedRoots),
    retired,
    revocations: Map.groupBy(rows, ({ revocationId }) => revocationId),
  };
}

function viewAt(revocations: RevocationData["revocations"], time: number): RevocationView {
  return {
    isRevoked: (revocationId, rightful) =>
      (revocations.get(revocationId) ?? []).some(
        (row) => row.time <= time && rightful.includes(row.revokedBy),
      ),
  };
}
