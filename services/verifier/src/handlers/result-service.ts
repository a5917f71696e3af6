import { type JsonObject, toJson } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { AgentRef } from "@depute/contracts/agenta/delegation/v0/common_pb";
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
  requestIdReused,
  toTimestamp,
} from "@depute/core";
import { bytesOf, cutPage, ownHeaders } from "@depute/service";
import { decode, encode, WireEncodeError } from "@depute/wire";
import { createBreath } from "../breath.ts";
import type { By } from "../checker/checker.ts";
import { needText } from "../json-value.ts";
import { byOf } from "../judging.ts";
import {
  ARTIFACT_URN,
  type ArtifactVerdict,
  assertBorne,
  assertRole,
  type EvidencePiece,
  type JudgedPiece,
  judgeArtifact,
  type Owners,
  storedDigests,
  type Terms,
} from "../rules/evidence.ts";
import { tooMany } from "../rules/limits.ts";
import { digestOf, hashMatches, resultHash } from "../rules/result-hash.ts";
import { getArtifact, hasArtifact, insertArtifact, usageOf } from "../store/artifacts.ts";
import { finalResult, getResult, insertResult, listResults, type ResultRow } from "../store/results.ts";
import { pushResult } from "../store/trust-outbox.ts";
import type { Verifier } from "../verifier.ts";

/** Most artifacts and bytes of one caller. */
const MAX_ARTIFACTS = 10_000;
const MAX_ARTIFACT_BYTES = 1024 ** 3;
/** Results of one receipt: every one but the last is inconclusive. */
const MAX_RESULTS = 100;

const VERDICTS: Record<ArtifactVerdict, Verdict> = {
  matches: Verdict.MATCHES,
  differs: Verdict.DIFFERS,
  missing: Verdict.MISSING,
  not_checked: Verdict.NOT_CHECKED,
};

/** ResultService (Agenta verification_result; NEKTE verify). */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a table of methods, each with a few lines of its own
export function resultService(verifier: Verifier): ServiceImpl<typeof ResultService> {
  const { store, engine, clock, authority, log, checker } = verifier;

  async function judged(
    pieces: readonly { piece: EvidencePiece; field: string }[],
    signal: AbortSignal,
  ): Promise<JudgedPiece[]> {
    const digests = storedDigests(pieces.map(({ piece }) => piece));
    const stored = await store.read(async (tx) => {
      const found = new Set<string>();
      for (const digest of digests) if (await hasArtifact(tx, digest)) found.add(digest);
      return found;
    });
    const fetched = await verifier.evidence.digests(
      pieces.map(({ piece }) => piece.uri),
      signal,
    );
    const breathe = createBreath();
    const verdicts: JudgedPiece[] = [];
    for (const { piece, field } of pieces) {
      const isStored = (digest: string) => stored.has(digest);
      const verdict = judgeArtifact(engine.sha256, piece, isStored, (uri) => fetched.get(uri), field);
      verdicts.push({ ...piece, verdict });
      await breathe();
    }
    return verdicts;
  }

  async function hashOf(text: string, by: By): Promise<string> {
    try {
      return digestOf(engine.sha256, Buffer.from(await checker.canonical(text, by, "result")));
    } catch (error) {
      if (error instanceof CanonicalError) throw invalid("result", error.message);
      throw error;
    }
  }

  return {
    async storeArtifact(request: StoreArtifactRequest, context: HandlerContext) {
      const { principal } = await authority.identify(context);
      const { content, mediaType } = request;
      const digest = digestOf(engine.sha256, content);
      if (request.digest !== "" && request.digest !== digest) {
        throw new DeputeError(ErrorReason.DIGEST_MISMATCH, "the bytes have another digest", {
          metadata: { expected: request.digest, actual: digest },
          violations: [{ field: "digest", description: "is not that of the content" }],
        });
      }
      await store.write(async (tx) => {
        if (await hasArtifact(tx, digest)) return;
        const { count, bytes } = await usageOf(tx, principal);
        if (count >= MAX_ARTIFACTS) throw tooMany("artifacts", MAX_ARTIFACTS);
        if (bytes + content.length > MAX_ARTIFACT_BYTES) throw tooMany("artifact_bytes", MAX_ARTIFACT_BYTES);
        await insertArtifact(tx, digest, { content, mediaType }, principal, clock.now());
      });
      return { uri: `${ARTIFACT_URN}${digest}`, digest };
    },

    async getArtifact({ digest }: GetArtifactRequest, context: HandlerContext) {
      await authority.identify(context);
      const found = await store.read((tx) => getArtifact(tx, digest));
      if (found === undefined) {
        throw new DeputeError(ErrorReason.ARTIFACT_NOT_FOUND, "no such artifact", {
          metadata: { artifact: digest },
        });
      }
      return { content: found.content, mediaType: found.mediaType };
    },

    async checkArtifacts({ artifacts }: CheckArtifactsRequest, context: HandlerContext) {
      await authority.identify(context);
      const pieces = await judged(
        artifacts.map((piece, i) => ({ piece, field: `artifacts[${i}]` })),
        context.signal,
      );
      return { artifacts: pieces.map(toChecked) };
    },

    async submitVerificationResult(request: SubmitVerificationResultRequest, context: HandlerContext) {
      const { local } = await authority.identify(context);
      if (!local) {
        throw new DeputeError(
          ErrorReason.CALLER_NOT_ALLOWED,
          "results are submitted by the platform's services",
        );
      }
      const { result, terms: agreed } = request;
      if (result?.verifierAgent === undefined) throw invalid("result", "is needed");
      if (agreed?.seller === undefined || agreed.buyer === undefined) throw invalid("terms", "are needed");
      const terms: Terms = { ...agreed, seller: agreed.seller, buyer: agreed.buyer };
      const pieces = await judged(
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
        const known = await getResult(tx, result.verificationId);
        if (known?.digest === digest) return known;
        if (known !== undefined)
          throw requestIdReused(result.verificationId, "result", "result.verification_id");
        assertRole(result.verifierAgent ?? terms.seller, terms, owners);
        assertBorne(result, terms, pieces);
        const final = await finalResult(tx, result.receiptId);
        if (final !== undefined) throw isFinal(final);
        const before = await listResults(tx, result.receiptId, MAX_RESULTS);
        if (before.length >= MAX_RESULTS) throw tooMany("verification_results", MAX_RESULTS);
        const added: ResultRow = {
          verificationId: result.verificationId,
          receiptId: result.receiptId,
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
      };
    },

    async listVerificationResults(
      { receiptId, pageToken }: ListVerificationResultsRequest,
      context: HandlerContext,
    ) {
      await authority.identify(context);
      const filters = { list: "verification-results", receiptId };
      const begin = Number(decodePageToken(pageToken, filters)?.[0] ?? 0);
      const rows = await store.read((tx) => listResults(tx, receiptId, MAX_RESULTS));
      const rest = rows.slice(begin).map(({ document }) => fromDocument(document));
      const { items, more } = cutPage(rest, rest.length, (one) => bytesOf(VerificationResultSchema, one));
      return {
        results: items,
        nextPageToken: more ? encodePageToken([begin + items.length], filters) : "",
      };
    },

    async checkResultHash(request: CheckResultHashRequest, context: HandlerContext) {
      const identity = await authority.identify(context);
      const text = needText(request.result, request.resultJson, "result");
      const hash = await hashOf(text, byOf({ identity, signal: context.signal }));
      const { resultHash: given } = request;
      return { hash, matches: given !== "" && hashMatches(hash, given) };
    },
  };
}

/** Whom the agents belong to, where a third party judges; undefined where one of them is not registered. */
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
  const known = parties.filter((party) => party !== undefined);
  return verifier === undefined || known.length < 2 ? undefined : { verifier, parties: known };
}

function toChecked({ artifactType, uri, verdict }: JudgedPiece) {
  return { artifactType, uri: uri.slice(0, 256).toWellFormed(), verdict: VERDICTS[verdict] };
}

/** The result's JSON, as Agenta has it and as it stands in the log. */
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

function isFinal({ verificationId }: ResultRow): DeputeError {
  return new DeputeError(
    ErrorReason.VERIFICATION_FINAL,
    `the receipt's verification ${verificationId} has decided: a pass or a fail is final, and only an inconclusive result is followed by another`,
    {
      metadata: { verification: verificationId },
    },
  );
}
