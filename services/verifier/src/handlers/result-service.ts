import { type JsonObject, toJson } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { AgentRef } from "@depute/contracts/agenta/delegation/v0/agenta_common_pb";
import { VerificationMode } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import {
  Decision,
  VerificationResultSchema,
} from "@depute/contracts/agenta/delegation/v0/verification_result_pb";
import {
  type CheckArtifactsRequest,
  type CheckResultHashRequest,
  type GetArtifactRequest,
  type ListVerificationResultsRequest,
  type ResultService,
  type StoreArtifactRequest,
  type SubmitVerificationResultRequest,
  SubmitVerificationResultRequestSchema,
  ArtifactVerdict as Verdict,
} from "@depute/contracts/depute/verifier/v1/result_service_pb";
import {
  CanonicalError,
  canonicalJson,
  DeputeError,
  decodePageToken,
  ErrorReason,
  encodePageToken,
  invalid,
  owningOrganization,
  pageSize,
  requestIdReused,
  toTimestamp,
} from "@depute/core";
import { bytesOf, cutPage, ownHeaders } from "@depute/service";
import { isPurged, type ReadTx } from "@depute/store";
import { decode, encode, WireEncodeError } from "@depute/wire";
import type { CheckCaller } from "../checker/checker.ts";
import { requireText } from "../json-value.ts";
import { checkCallerOf } from "../output-verification.ts";
import {
  ARTIFACT_URN,
  type ArtifactVerdict,
  assertPassSupported,
  assertRole,
  type EvidencePiece,
  type Owners,
  storedDigests,
  type Terms,
  type VerifiedPiece,
  verifyArtifact,
} from "../rules/evidence.ts";
import { tooMany } from "../rules/limits.ts";
import { digestOf, hashMatches, resultHash } from "../rules/result-hash.ts";
import { getArtifact, hasArtifact, insertArtifact, usageOf } from "../store/artifacts.ts";
import { finalResult, getResult, insertResult, listResults, type ResultRow } from "../store/results.ts";
import { pushResult } from "../store/trust-outbox.ts";
import type { Verifier } from "../verifier.ts";
import { createYieldToEventLoop } from "../yield-to-event-loop.ts";

/**
 * Limits of the artifacts that one caller stores: their number (MAX_ARTIFACTS), and their total bytes
 * (MAX_ARTIFACT_BYTES).
 */
const MAX_ARTIFACTS = 10_000;
const MAX_ARTIFACT_BYTES = 1024 ** 3;
/** Maximum number of results for one receipt. A pass or a fail is final, so all earlier results are inconclusive. */
const MAX_RESULTS = 100;

const VERDICTS: Record<ArtifactVerdict, Verdict> = {
  matches: Verdict.MATCHES,
  differs: Verdict.DIFFERS,
  missing: Verdict.MISSING,
  not_checked: Verdict.NOT_CHECKED,
};

/** Handles the calls of ResultService (Agenta verification_result; NEKTE verify). */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a table of methods, each with a few lines of its own
export function resultService(verifier: Verifier): ServiceImpl<typeof ResultService> {
  const { store, engine, clock, authority, log, checker } = verifier;

  async function verifiedPieces(
    pieces: readonly { piece: EvidencePiece; field: string }[],
    signal: AbortSignal,
  ): Promise<VerifiedPiece[]> {
    const digests = storedDigests(pieces.map(({ piece }) => piece));
    const stored = await store.read(async (tx) => {
      const foundDigests = new Set<string>();
      for (const digest of digests) if (await hasArtifact(tx, digest)) foundDigests.add(digest);
      return foundDigests;
    });
    const fetched = await verifier.evidence.digests(
      pieces.map(({ piece }) => piece.uri),
      signal,
    );
    const yieldToEventLoop = createYieldToEventLoop(verifier);
    const verdicts: VerifiedPiece[] = [];
    for (const { piece, field } of pieces) {
      const isStored = (digest: string) => stored.has(digest);
      const verdict = verifyArtifact(engine.sha256, piece, isStored, (uri) => fetched.get(uri), field);
      verdicts.push({ ...piece, verdict });
      await yieldToEventLoop();
    }
    return verdicts;
  }

  async function hashOf(text: string, by: CheckCaller): Promise<string> {
    try {
      return digestOf(engine.sha256, Buffer.from(await checker.canonical(text, by, "result")));
    } catch (error) {
      if (error instanceof CanonicalError) throw invalid("result", error.message);
      throw error;
    }
  }

  return {
    async storeArtifact(request: StoreArtifactRequest, context: HandlerContext) {
      const identity = await authority.identify(context);
      const { principal } = identity;
      const { content, mediaType } = request;
      const organization = owningOrganization(identity, undefined);
      const digest = digestOf(engine.sha256, content);
      if (request.digest !== "" && request.digest !== digest) {
        throw new DeputeError(ErrorReason.DIGEST_MISMATCH, "the content does not match its digest", {
          metadata: { expected: request.digest, actual: digest },
          violations: [{ field: "digest", description: "does not match the content" }],
        });
      }
      await store.write(async (tx) => {
        if (await hasArtifact(tx, digest)) return;
        const { count, bytes } = await usageOf(tx, principal);
        if (count >= MAX_ARTIFACTS) throw tooMany("artifacts", MAX_ARTIFACTS);
        if (bytes + content.length > MAX_ARTIFACT_BYTES) throw tooMany("artifact_bytes", MAX_ARTIFACT_BYTES);
        await insertArtifact(tx, digest, { content, mediaType, organization }, principal, clock.now());
      });
      return { uri: `${ARTIFACT_URN}${digest}`, digest };
    },

    async getArtifact({ digest }: GetArtifactRequest, context: HandlerContext) {
      const identity = await authority.identify(context);
      const foundArtifact = await store.read((tx) => getArtifact(tx, digest));
      if (foundArtifact === undefined) {
        throw new DeputeError(
          ErrorReason.ARTIFACT_NOT_FOUND,
          "the artifact does not exist; check the digest",
          {
            metadata: { artifact: digest },
          },
        );
      }
      // A caller of another organization can find the artifact by guessing its content. Such a caller must not learn
      // which organization owns the artifact.
      const isOwn = identity.local || identity.organization === foundArtifact.organization;
      return isOwn ? foundArtifact : { ...foundArtifact, organization: "" };
    },

    async checkArtifacts({ artifacts }: CheckArtifactsRequest, context: HandlerContext) {
      await authority.identify(context);
      const pieces = await verifiedPieces(
        artifacts.map((piece, i) => ({ piece, field: `artifacts[${i}]` })),
        context.signal,
      );
      return { artifacts: pieces.map(toChecked) };
    },

    async submitVerificationResult(request: SubmitVerificationResultRequest, context: HandlerContext) {
      const identity = await authority.identify(context);
      if (!identity.local) {
        throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only the platform's services submit results");
      }
      const { result, terms: agreed } = request;
      if (result?.verifierAgent === undefined) throw invalid("result", "is required");
      if (agreed?.seller === undefined || agreed.buyer === undefined) throw invalid("terms", "are required");
      const terms: Terms = { ...agreed, seller: agreed.seller, buyer: agreed.buyer };
      const pieces = await verifiedPieces(
        [
          ...request.artifacts.map((piece, i) => ({ piece, field: `artifacts[${i}]` })),
          ...(result.evidence?.values ?? []).map((piece, i) => ({ piece, field: `result.evidence[${i}]` })),
        ],
        context.signal,
      );
      const owners = await ownersOf(verifier, result.verifierAgent, terms, context.signal);
      const document = toDocument(result);
      const body = toJson(SubmitVerificationResultRequestSchema, request);
      const digest = resultHash(engine.sha256, body);
      const row = await store.write(async (tx) => {
        const existing = await getResult(tx, result.verificationId);
        if (existing?.digest === digest) return existing;
        if (existing !== undefined)
          throw requestIdReused(result.verificationId, "result", "result.verification_id");
        await requireUnpurged(tx, result);
        assertRole(result.verifierAgent ?? terms.seller, terms, owners);
        assertPassSupported(result, terms, pieces);
        const final = await finalResult(tx, result.receiptId);
        if (final !== undefined) throw isFinal(final.verificationId);
        const before = await listResults(tx, result.receiptId, MAX_RESULTS);
        if (before.length >= MAX_RESULTS) throw tooMany("verification_results", MAX_RESULTS);
        const added: ResultRow = {
          verificationId: result.verificationId,
          receiptId: result.receiptId,
          organization: owningOrganization(identity, undefined),
          final: result.decision === Decision.INCONCLUSIVE ? 0 : 1,
          digest,
          document: document.text,
          logIndex: await log.append(tx, "verification_result", document.text),
          recordTime: clock.now(),
        };
        await insertResult(tx, added);
        if (added.final === 1 && terms.mode !== VerificationMode.SELLER_ATTESTED) {
          await pushResult(tx, {
            verificationId: result.verificationId,
            agentId: terms.seller.agentId,
            counterpartAgentId: terms.buyer.agentId,
            verifierAgentId: owners?.verifier.agentId ?? "",
            success: result.decision === Decision.PASS,
            quality: result.score,
          });
          tx.afterCommit(() => verifier.trust.wake());
        }
        return added;
      });
      return {
        artifacts: pieces.map(toChecked),
        logIndex: BigInt(row.logIndex),
        recordTime: toTimestamp(row.recordTime),
        organization: row.organization,
      };
    },

    async listVerificationResults(
      { receiptId, pageToken, pageSize: requestedSize }: ListVerificationResultsRequest,
      context: HandlerContext,
    ) {
      await authority.identify(context);
      const filters = { list: "verification-results", receiptId };
      const begin = Number(decodePageToken(pageToken, filters)?.[0] ?? 0);
      const rows = await store.read((tx) => listResults(tx, receiptId, MAX_RESULTS));
      const remaining = rows.slice(begin).map(({ document }) => fromDocument(document));
      const { items, more } = cutPage(remaining, pageSize(requestedSize), (one) =>
        bytesOf(VerificationResultSchema, one),
      );
      return {
        results: items,
        nextPageToken: more ? encodePageToken([begin + items.length], filters) : "",
      };
    },

    async checkResultHash(request: CheckResultHashRequest, context: HandlerContext) {
      const identity = await authority.identify(context);
      const text = requireText(request.result, request.resultJson, "result");
      const hash = await hashOf(text, checkCallerOf({ identity, signal: context.signal }));
      const { resultHash: sentHash } = request;
      return { hash, matches: sentHash !== "" && hashMatches(hash, sentHash) };
    },
  };
}

/**
 * Reads the principals and organizations of the agents in a third-party verification. Returns undefined in the other
 * modes, or if an agent is not registered.
 */
async function ownersOf(
  { organizations }: Verifier,
  { agentId: verifierId }: AgentRef,
  { mode, seller, buyer }: Terms,
  signal: AbortSignal,
): Promise<Owners | undefined> {
  if (mode !== VerificationMode.THIRD_PARTY_VERIFIED) return undefined;
  const agentIds = [verifierId, seller.agentId, buyer.agentId];
  const { affiliations } = await organizations.batchGetAffiliations(
    { agentIds },
    { headers: ownHeaders(""), signal },
  );
  const [verifier, ...parties] = agentIds.map((id) => affiliations.find(({ agentId }) => agentId === id));
  const knownParties = parties.filter((party) => party !== undefined);
  return verifier === undefined || knownParties.length < 2 ? undefined : { verifier, parties: knownParties };
}

function toChecked({ artifactType, uri, verdict }: VerifiedPiece) {
  return { artifactType, uri: uri.slice(0, 256).toWellFormed(), verdict: VERDICTS[verdict] };
}

/** Converts a result to Agenta's JSON, and to its canonical text, whose digest the transparency log records. */
function toDocument(result: Parameters<typeof encode<typeof VerificationResultSchema>>[1]) {
  try {
    const json = encode(VerificationResultSchema, result) as JsonObject;
    return { json, text: canonicalJson(json) };
  } catch (error) {
    if (error instanceof WireEncodeError || error instanceof CanonicalError) {
      throw invalid("result", error.message);
    }
    throw error;
  }
}

function fromDocument(document: string) {
  const decoded = decode(VerificationResultSchema, JSON.parse(document));
  if (!decoded.ok) throw new Error(`a stored verification result is damaged: ${decoded.error.message}`);
  return decoded.message;
}

/**
 * Requires that no purge has deleted a result with this id, or the final result for this receipt.
 *
 * @throws DeputeError REQUEST_ID_REUSED, VERIFICATION_FINAL
 */
async function requireUnpurged(
  tx: ReadTx,
  { verificationId, receiptId }: Pick<ResultRow, "verificationId" | "receiptId">,
): Promise<void> {
  if (await isPurged(tx, "verification", verificationId)) {
    throw requestIdReused(verificationId, "result", "result.verification_id");
  }
  if (await isPurged(tx, "receipt", receiptId)) throw isFinal("");
}

/**
 * Returns the error for a receipt with a final result.
 *
 * @param verificationId the id of the final verification; empty if a purge has deleted it
 */
function isFinal(verificationId: string): DeputeError {
  return new DeputeError(
    ErrorReason.VERIFICATION_FINAL,
    `the receipt's verification${verificationId && ` ${verificationId}`} is final; only an inconclusive result can be followed by another`,
    {
      metadata: { verification: verificationId },
    },
  );
}
