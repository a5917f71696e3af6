import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ArtifactType } from "@depute/contracts/agenta/delegation/v0/agenta_common_pb";
import { VerificationMode } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import { CheckStatus, Decision } from "@depute/contracts/agenta/delegation/v0/verification_result_pb";
import { AttestationService } from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { ContractService } from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import {
  ResultService,
  SubmitVerificationResultRequestSchema,
} from "@depute/contracts/depute/verifier/v1/result_service_pb";
import {
  ReviewKind,
  ReviewService,
  ReviewState,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { documentDigest } from "@depute/dct/transparency";
import { HOP, ownHeaders } from "@depute/service";
import { walkReads } from "@depute/service/testing";
import { afterEach, beforeEach, expect, it } from "vitest";
import { toMessage } from "../documents.ts";
import { delegator, engine, signedCompletion, signedContract } from "../testing/contracts.ts";
import { asCaller, message, type Platform, refusal, startPlatform, value } from "../testing/platform.ts";

/** The services whose records a purge deletes. The purge keeps the digests in the transparency log. */
const SERVICES = [AttestationService, ContractService, ResultService, ReviewService];

/** The secret of the platform's services. With it, a call can name the organization that owns the new records. */
const SECRET = "s".repeat(43);
const HELLO = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

let platform: Platform;
let acme: Awaited<ReturnType<typeof fill>>;
let globex: typeof acme;
beforeEach(async () => {
  platform = await startPlatform([], undefined, undefined, ["--internal-secret", SECRET]);
  acme = await fill("acme");
  globex = await fill("globex");
}, 180_000);
afterEach(() => platform.stop());

let requests = 0;
const requestId = () => `request-${++requests}`;

function submission(organization: string) {
  const agent = (side: string) => ({ agentId: `agent:${side}`, organizationId: organization });
  const request: MessageInitShape<typeof SubmitVerificationResultRequestSchema> = {
    result: {
      ...{ protocolVersion: "agenta.delegation.v0", messageType: "verification_result" },
      ...{ verificationId: `verification-${organization}`, requestId: `request-${organization}` },
      ...{ receiptId: `receipt-${organization}`, verifierAgent: agent("seller"), decision: Decision.PASS },
      ...{ score: 0.9, verifiedAt: "2026-01-01T00:00:00Z" },
      checks: [{ checkId: "check-1", description: `${organization} words`, status: CheckStatus.PASS }],
    },
    terms: {
      ...{ mode: VerificationMode.SELLER_ATTESTED, seller: agent("seller"), buyer: agent("buyer") },
      requiredArtifacts: [ArtifactType.RESULT_PAYLOAD],
    },
    artifacts: [{ artifactType: ArtifactType.RESULT_PAYLOAD, uri: "data:,hello", digest: HELLO }],
  };
  return create(SubmitVerificationResultRequestSchema, request);
}

/** Creates records of an organization in every table whose rows belong to an organization. */
async function fill(organization: string) {
  const headers = ownHeaders("", organization);
  headers.set(HOP.internal, SECRET);
  const by = { headers };
  const label = `${organization} words`;
  const outputSchema = { type: "object", description: label } as const;
  const contracts = [signedContract({ outputSchema }), signedContract({ outputSchema })];
  for (const contract of contracts)
    await platform.contracts.createContract({ contract: message(contract) }, by);
  const [first, second] = contracts.map(({ id }) => id) as [string, string];
  const result = { success: true, output: { label }, costMicrocents: 10, durationMs: 5 };
  const attestations = [signedCompletion(first, { result }), signedCompletion(second, { result })];
  for (const each of attestations)
    await platform.attestations.recordAttestation({ attestation: toMessage("attestation", each) }, by);
  const reviews: string[] = [];
  for (const title of [label, `${label} 2`]) {
    const { review } = await platform.reviews.createReview(
      {
        ...{ requestId: requestId(), kind: ReviewKind.OVERSIGHT, subject: "task", title },
        ...{ content: value({ label }), reviewers: [delegator.principal.id] },
      },
      by,
    );
    reviews.push(review?.id ?? "");
  }
  const [reviewId = ""] = reviews;
  const question = { reviewId, requestId: requestId(), text: label };
  await platform.reviews.inquireReview(question, asCaller(delegator));
  await platform.results.submitVerificationResult(submission(organization), by);
  const content = new TextEncoder().encode(label);
  const { digest } = await platform.results.storeArtifact({ content, mediaType: label }, by);
  const receiptId = `receipt-${organization}`;
  const ids = [first, second, ...attestations.map(({ id }) => id), ...reviews, digest, receiptId];
  return { ids, contracts, attestations, reviewId };
}

const walk = () =>
  walkReads({
    transport: platform.transport,
    services: SERVICES,
    texts: [...acme.ids, ...globex.ids, delegator.principal.id],
  });

async function purge(organization: string, maxCount: number) {
  const deleted = new Map<string, number>();
  for (let calls = 1; calls < 50; calls++) {
    const request = { requestId: requestId(), organization, maxCount };
    const answer = await platform.contracts.purgeOrganization(request);
    for (const { kind, count } of answer.deleted) deleted.set(kind, (deleted.get(kind) ?? 0) + Number(count));
    expect(Number(answer.deletedCount)).toBeLessThanOrEqual(maxCount);
    const remaining = answer.remaining.map(({ kind }) => kind);
    if (!answer.more) return { deleted: Object.fromEntries(deleted), remaining };
  }
  throw new Error("the purge does not end");
}

it.each([1])(
  "leaves nothing of one organization, and all of the other, in steps of %i",
  async (max) => {
    const before = await walk();
    const { deleted, remaining } = await purge("acme", max);
    expect(deleted).toEqual({
      ...{ contracts: 2, attestations: 2, reviews: 2, "verification results": 1, artifacts: 1 },
    });
    expect(remaining).toEqual([
      ...["pending completions", "verifier answers", "transparency log", "copies of revocations"],
      "purged ids of the verifier",
    ]);
    const after = await walk();
    const gone = [...acme.ids.filter((id) => !id.startsWith("receipt")), "acme"];
    for (const [call, text] of after) {
      for (const word of gone) expect([call, text]).toEqual([call, expect.not.stringContaining(word)]);
      const earlier = before.get(call) ?? "";
      const isOthers = gone.every((word) => !earlier.includes(word));
      if (isOthers && earlier.includes("globex")) expect([call, text]).toEqual([call, earlier]);
    }
    const { contracts } = await platform.contracts.listContracts({});
    expect(contracts.map(({ id }) => id).sort()).toEqual(globex.contracts.map(({ id }) => id).sort());
    expect((await purge("acme", max)).deleted).toEqual({});
  },
  180_000,
);

it("keeps digests: no caller reuses an id, and the log still proves attestations", async () => {
  await purge("acme", 1000);
  const [contract] = acme.contracts;
  const [attestation] = acme.attestations;
  if (contract === undefined || attestation === undefined) throw new Error("none");
  const other = signedContract({ id: contract.id, maxBudgetMicrocents: 1 });
  for (const each of [contract, other]) {
    const reused = platform.contracts.createContract({ contract: message(each) });
    expect(await refusal(reused)).toMatchObject({ reason: "CONTRACT_EXISTS" });
  }
  const reused = signedCompletion(globex.contracts[0]?.id ?? "", { id: attestation.id });
  expect(
    await refusal(platform.attestations.recordAttestation({ attestation: toMessage("attestation", reused) })),
  ).toMatchObject({ reason: "ATTESTATION_EXISTS" });
  const second = submission("acme");
  if (second.result !== undefined) second.result.verificationId = "verification-second";
  expect(await refusal(platform.results.submitVerificationResult(second))).toMatchObject({
    reason: "VERIFICATION_FINAL",
  });
  const digest = documentDigest(engine.sha256, attestation);
  const { entry } = await platform.log.getInclusionProof({ subject: { case: "digest", value: digest } });
  expect(entry).toBeDefined();
});

it("withdraws an open review before it deletes it, and numbers later changes after it", async () => {
  let sequence = 0n;
  const states: ReviewState[] = [];
  for await (const each of platform.reviews.watchReviews({ sendStart: true })) {
    if (each.review === undefined)
      await platform.contracts.purgeOrganization({ requestId: "r", organization: "acme" });
    if (each.review?.state === ReviewState.WITHDRAWN) states.push(each.review.state);
    sequence = each.sequence;
    if (states.length === 2) break;
  }
  await purge("acme", 1000);
  const created = platform.reviews.createReview({
    ...{ requestId: requestId(), kind: ReviewKind.OVERSIGHT, subject: "task", title: "later" },
    reviewers: [delegator.principal.id],
  });
  const id = (await created).review?.id;
  for await (const each of platform.reviews.watchReviews({ afterSequence: sequence })) {
    expect([each.review?.id, each.sequence > sequence]).toEqual([id, true]);
    break;
  }
});

it("continues after a restart in the middle, and is for operators only", async () => {
  const request = { requestId: "half", organization: "acme", maxCount: 3 };
  const first = await platform.contracts.purgeOrganization(request);
  expect(first.more).toBe(true);
  await platform.restart();
  expect(await platform.contracts.purgeOrganization(request)).toEqual(first);
  await purge("acme", 3);
  for (const text of (await walk()).values()) expect(text).not.toContain("acme");
  const refused = platform.contracts.purgeOrganization({ ...request, requestId: "x" }, asCaller(delegator));
  expect(await refusal(refused)).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
});
