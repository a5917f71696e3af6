import { create, fromJsonString, toJsonString } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type RevocationCheckpoint,
  RevocationCheckpointSchema,
} from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import type { RootSuccession as RootSuccessionMessage } from "@depute/contracts/depute/tokens/v1/root_key_service_pb";
import { type LogHead, LogHeadSchema } from "@depute/contracts/depute/verifier/v1/log_service_pb";
import {
  type PublishLogHeadRequest,
  type WitnessedPlatform,
  WitnessedPlatformSchema,
  type WitnessService,
} from "@depute/contracts/depute/verifier/v1/witness_service_pb";
import {
  DeputeError,
  decodePageToken,
  ErrorReason,
  encodeBase64Url,
  encodePageToken,
  formatTime,
  fromTimestamp,
  invalid,
  pageSize,
  toTimestamp,
} from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import {
  followRootSuccessions,
  isSignedCheckpoint,
  isSignedRootChange,
  verifyConsistency,
  verifyLogHead,
} from "@depute/dct/transparency";
import { hasRole, type Identity } from "@depute/service";
import { tooMany } from "../rules/limits.ts";
import { advance, type Continuation, type WitnessedHead } from "../rules/witnessed-head.ts";
import {
  deleteWitnessed,
  findWitnessed,
  listWitnessed,
  lockWitnessed,
  type WitnessedRow,
  writeWitnessed,
} from "../store/witnessed-platforms.ts";
import type { Verifier } from "../verifier.ts";

/** Handles the calls of WitnessService. */
export function witnessService(verifier: Verifier): ServiceImpl<typeof WitnessService> {
  const { store, authority, engine, clock, maxWitnessedPlatforms: max } = verifier;
  return {
    async publishLogHead(request: PublishLogHeadRequest, context) {
      const { principal: platform } = await authority.identify(context);
      const publish = publisher(engine, request);
      const now = clock.now();
      const row = await store.write(async (tx) => {
        const kept = await lockWitnessed(tx, platform, now, max);
        if (kept === undefined) throw tooMany("witnessed_platforms", max);
        const changed = publish(kept, now);
        if (changed !== undefined) await writeWitnessed(tx, changed);
        return changed ?? kept;
      });
      return { platform: recordMessage(row) };
    },

    async getWitnessedPlatform(request, context) {
      const identity = await authority.identify(context);
      const { platform = identity.principal } = request.platform === "" ? {} : request;
      const isVisible = platform === identity.principal || readsAll(identity);
      const row = isVisible ? await store.read((tx) => findWitnessed(tx, platform)) : undefined;
      if (row !== undefined) return { platform: recordMessage(row) };
      throw new DeputeError(
        ErrorReason.WITNESSED_PLATFORM_NOT_FOUND,
        "this platform has no record; publish a head with its credentials first",
        { metadata: { platform } },
      );
    },

    async listWitnessedPlatforms(request, context) {
      assertReadsAll(await authority.identify(context));
      const filters = { list: "witnessed-platforms" };
      const after = String(decodePageToken(request.pageToken, filters)?.[0] ?? "");
      const size = pageSize(request.pageSize);
      const rows = await store.read((tx) => listWitnessed(tx, after, size + 1));
      const page = rows.slice(0, size);
      const last = rows.length > size ? (page.at(-1)?.platform ?? "") : "";
      return {
        platforms: page.map(recordMessage),
        nextPageToken: last === "" ? "" : encodePageToken([last], filters),
      };
    },

    async deleteWitnessedPlatform({ platform }, context) {
      await authority.identify(context);
      return { deleted: await store.write((tx) => deleteWitnessed(tx, platform)) };
    },
  };
}

/** Whether the caller may read the records of all platforms. */
function readsAll(identity: Identity): boolean {
  return identity.local || hasRole(identity, "auditor") || hasRole(identity, "operator");
}

/**
 * Requires that the caller may read the records of all platforms.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED, also for an auditor of one organization
 */
function assertReadsAll(identity: Identity): void {
  if (readsAll(identity)) return;
  throw new DeputeError(
    ErrorReason.CALLER_NOT_ALLOWED,
    "the caller may not list the witnessed platforms; an operator grants the role auditor",
  );
}

/**
 * Returns the changed record of a platform; undefined if the head states the same state as the kept head. Throws the
 * errors of `advance`.
 */
type Publish = (kept: WitnessedRow, now: number) => WitnessedRow | undefined;

/**
 * Verifies the signature of the head in a request, and returns the function that records the head.
 *
 * @throws DeputeError SIGNATURE_INVALID; INVALID_REQUEST for a request without a head
 */
function publisher(engine: CryptoEngine, request: PublishLogHeadRequest): Publish {
  const { head } = request;
  switch (head.case) {
    case "logHead": {
      const next = head.value;
      if (!verifyLogHead(engine, { ...stateOfLog(next), log: next.log }, next.signature))
        throw forged("log_head", next.log);
      return (kept, now) => {
        const last = kept.logHead === null ? undefined : fromJsonString(LogHeadSchema, kept.logHead);
        const proof: Continuation = {
          firstSize: Number(request.firstSize),
          holds: () => last !== undefined && continues(engine, last, next, request.consistencyProof),
        };
        if (advance(last && shownByLog(last), shownByLog(next), proof) === "same") return undefined;
        return { ...kept, logHead: toJsonString(LogHeadSchema, next), logHeadTime: now };
      };
    }
    case "revocationCheckpoint": {
      const next = head.value;
      const { sequence, signTime, signature, rootChange, rootChangeSignature, ...body } = next;
      const signedAt = formatTime(signTime === undefined ? 0 : fromTimestamp(signTime));
      const checkpoint = {
        ...{ sequence: Number(sequence), head: body.head, signer: body.signer },
        ...{ signedAt, signature: encodeBase64Url(signature) },
      };
      if (!isSignedCheckpoint(engine, checkpoint, body.signer))
        throw forged("revocation_checkpoint", body.signer);
      const rootSigned = encodeBase64Url(rootChangeSignature);
      if (rootChange > 0n && !isSignedRootChange(engine, checkpoint, Number(rootChange), rootSigned))
        throw forged("revocation_checkpoint.root_change_signature", body.signer);
      return (kept, now) => {
        const last =
          kept.checkpoint === null ? undefined : fromJsonString(RevocationCheckpointSchema, kept.checkpoint);
        const isSuccessor = () =>
          last !== undefined && follows(engine, last.signer, next.signer, request.successions);
        if (
          advance(last && shownByCheckpoint(last), shownByCheckpoint(next), undefined, isSuccessor) === "same"
        )
          return undefined;
        return { ...kept, checkpoint: toJsonString(RevocationCheckpointSchema, next), checkpointTime: now };
      };
    }
    default:
      throw invalid("head", "a log_head or a revocation_checkpoint is required");
  }
}

/** Whether signed statements of succession lead from one root key to another. */
function follows(
  engine: CryptoEngine,
  earlier: string,
  later: string,
  successions: readonly RootSuccessionMessage[],
): boolean {
  const statements = successions.map(({ earlier: from, successor: to, createTime, ...signatures }) => ({
    ...{ from, to, createdAt: formatTime(createTime === undefined ? 0 : fromTimestamp(createTime)) },
    fromSignature: encodeBase64Url(signatures.earlierSignature),
    toSignature: encodeBase64Url(signatures.successorSignature),
  }));
  return followRootSuccessions(engine, [earlier], statements).has(later);
}

function forged(field: string, signer: string): DeputeError {
  return new DeputeError(
    ErrorReason.SIGNATURE_INVALID,
    `the signature of ${field} is not by ${signer}; publish the head as the log signed it`,
    { violations: [{ field, description: "its signature is not valid" }] },
  );
}

function stateOfLog({ treeSize, rootHash, headTime }: LogHead) {
  return {
    treeSize: Number(treeSize),
    rootHash,
    time: headTime === undefined ? 0 : fromTimestamp(headTime),
  };
}

function shownByLog({ log, treeSize, rootHash }: LogHead): WitnessedHead {
  return { signer: log, size: Number(treeSize), digest: encodeBase64Url(rootHash), rootChange: 0 };
}

function shownByCheckpoint({ signer, sequence, head, rootChange }: RevocationCheckpoint): WitnessedHead {
  return { signer, size: Number(sequence), digest: head, rootChange: Number(rootChange) };
}

function continues(
  { sha256 }: CryptoEngine,
  first: LogHead,
  second: LogHead,
  proof: readonly Uint8Array[],
): boolean {
  const [before, after] = [stateOfLog(first), stateOfLog(second)];
  return verifyConsistency(sha256, {
    ...{ firstSize: before.treeSize, firstRoot: before.rootHash },
    ...{ secondSize: after.treeSize, secondRoot: after.rootHash },
    proof,
  });
}

function recordMessage(row: WitnessedRow): WitnessedPlatform {
  const { platform, logHead, logHeadTime, checkpoint, checkpointTime, createTime } = row;
  return create(WitnessedPlatformSchema, {
    ...{ platform, createTime: toTimestamp(createTime) },
    ...(logHead !== null && { logHead: fromJsonString(LogHeadSchema, logHead) }),
    ...(logHeadTime !== null && { logHeadTime: toTimestamp(logHeadTime) }),
    ...(checkpoint !== null && {
      revocationCheckpoint: fromJsonString(RevocationCheckpointSchema, checkpoint),
    }),
    ...(checkpointTime !== null && { revocationCheckpointTime: toTimestamp(checkpointTime) }),
  });
}
