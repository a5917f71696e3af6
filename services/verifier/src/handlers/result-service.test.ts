import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ArtifactType } from "@depute/contracts/agenta/delegation/v0/agenta_common_pb";
import { VerificationMode } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import {
  CheckStatus,
  Decision,
  VerificationResultSchema,
} from "@depute/contracts/agenta/delegation/v0/verification_result_pb";
import {
  ArtifactVerdict,
  type SubmitVerificationResultRequestSchema,
} from "@depute/contracts/depute/verifier/v1/result_service_pb";
import { documentDigest } from "@depute/dct/transparency";
import { encode } from "@depute/wire";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { engine, worker } from "../testing/contracts.ts";
import { fakeRegistry } from "../testing/fake-registry.ts";
import { asCaller, type Platform, refusal, startPlatform, value } from "../testing/platform.ts";

/** The agents of each principal. PROVEN has the organizations to which some of these principals have a proof. */
const AGENTS = {
  "k-seller": ["agent:seller", "agent:sock"],
  "k-buyer": ["agent:buyer"],
  "k-colleague": ["agent:colleague"],
  "k-third": ["agent:third"],
  "k-fourth": ["agent:fourth"],
};
const PROVEN = { "k-buyer": ["org:two"], "k-colleague": ["org:two"], "k-third": ["org:three"] };
const registry = () => fakeRegistry(AGENTS, PROVEN);

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform([], undefined, registry());
});
afterAll(() => platform.stop());

const agent = (agentId: string, organizationId: string) => ({ agentId, organizationId });
const seller = agent("agent:seller", "org:one");
const buyer = agent("agent:buyer", "org:two");
const third = agent("agent:third", "org:three");
const HELLO = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
const PAYLOAD = { artifactType: ArtifactType.RESULT_PAYLOAD, uri: "data:,hello", digest: HELLO };

type Submission = MessageInitShape<typeof SubmitVerificationResultRequestSchema>;
type Result = MessageInitShape<typeof VerificationResultSchema>;

let count = 0;
function submission(
  change: { result?: Partial<Result>; terms?: object; artifacts?: object[] } = {},
): Submission {
  count += 1;
  return {
    result: {
      protocolVersion: "agenta.delegation.v0",
      messageType: "verification_result",
      verificationId: `verification-${count}`,
      requestId: `request-${count}`,
      receiptId: `receipt-${count}`,
      verifierAgent: third,
      decision: Decision.PASS,
      score: 0.9,
      checks: [{ checkId: "check-1", description: "it says hello", status: CheckStatus.PASS }],
      verifiedAt: "2026-01-01T00:00:00Z",
      ...change.result,
    },
    terms: {
      mode: VerificationMode.THIRD_PARTY_VERIFIED,
      seller,
      buyer,
      requiredArtifacts: [ArtifactType.RESULT_PAYLOAD],
      minimumScore: 0.8,
      ...change.terms,
    },
    artifacts: (change.artifacts as []) ?? [PAYLOAD],
  } as Submission;
}
const submit = (request: Submission) => platform.results.submitVerificationResult(request);

test("stores a result with sufficient evidence once, as a leaf of the log", async () => {
  const request = submission({
    artifacts: [PAYLOAD, { artifactType: ArtifactType.LOGS, uri: "https://x.example/l" }],
  });
  const answer = await submit(request);
  expect(answer.artifacts.map(({ verdict }) => verdict)).toEqual([
    ArtifactVerdict.MATCHES,
    ArtifactVerdict.NOT_CHECKED,
  ]);
  expect(await submit(request)).toEqual(answer);
  const receiptId = request.result?.receiptId ?? "";
  const { results } = await platform.results.listVerificationResults({ receiptId });
  expect(results).toEqual([create(VerificationResultSchema, request.result as Result)]);
  const [stored] = results;
  if (stored === undefined) throw new Error("none");
  const digest = documentDigest(engine.sha256, encode(VerificationResultSchema, stored));
  const { entry } = await platform.log.getInclusionProof({ subject: { case: "digest", value: digest } });
  expect(entry?.index).toBe(answer.logIndex);
});

test.each<[what: string, change: Parameters<typeof submission>[0], field: string]>([
  ["none of the required evidence", { artifacts: [] }, "artifacts"],
  ["bytes with another digest", { artifacts: [{ ...PAYLOAD, uri: "data:,hullo" }] }, "artifacts"],
  [
    "evidence of the result with a wrong digest",
    { result: { evidence: { values: [{ ...PAYLOAD, uri: "data:,hullo" }] } } },
    "artifacts",
  ],
  ["a malformed data: URI", { artifacts: [{ ...PAYLOAD, uri: "data:hello" }] }, "artifacts"],
  [
    "an artifact that the store does not have",
    { artifacts: [{ ...PAYLOAD, uri: `urn:depute:artifact:sha256:${"0".repeat(64)}` }] },
    "artifacts",
  ],
  ["a lower score than agreed", { result: { score: 0.79 } }, "result.score"],
  [
    "a failed check",
    {
      result: {
        checks: [
          { checkId: "a-1", status: CheckStatus.PASS },
          { checkId: "a-2", status: CheckStatus.FAIL },
        ],
      },
    },
    "result.checks[1]",
  ],
  [
    "an inconclusive check",
    {
      result: {
        checks: [
          { checkId: "a-1", status: CheckStatus.PASS },
          { checkId: "a-2", status: CheckStatus.INCONCLUSIVE },
        ],
      },
    },
    "result.checks[1]",
  ],
  [
    "no check that passed",
    { result: { checks: [{ checkId: "a-1", status: CheckStatus.NOT_APPLICABLE }] } },
    "result.checks",
  ],
])("refuses a pass with %s, but accepts a fail", async (_, change, field) => {
  const refused = await refusal(submit(submission(change)));
  expect(refused).toMatchObject({ reason: "EVIDENCE_INSUFFICIENT" });
  expect(refused.fields).toContain(field);
  const failedResult = submission({ ...change, result: { ...change?.result, decision: Decision.FAIL } });
  expect((await submit(failedResult)).logIndex).toBeGreaterThanOrEqual(0n);
});

const { SELLER_ATTESTED, BUYER_VERIFIED, THIRD_PARTY_VERIFIED } = VerificationMode;
test.each<[mode: VerificationMode, verifierAgent: typeof seller, allowed: boolean]>([
  [SELLER_ATTESTED, seller, true],
  [SELLER_ATTESTED, buyer, false],
  [BUYER_VERIFIED, buyer, true],
  [BUYER_VERIFIED, seller, false],
  [BUYER_VERIFIED, third, false],
  [THIRD_PARTY_VERIFIED, third, true],
  [THIRD_PARTY_VERIFIED, seller, false],
  [THIRD_PARTY_VERIFIED, buyer, false],
  // `agent:sock` has the seller's key under another id. `agent:fourth` names an organization to which it has no proof.
  [THIRD_PARTY_VERIFIED, agent("agent:sock", "org:invented"), false],
  [THIRD_PARTY_VERIFIED, agent("agent:fourth", "org:three"), false],
  [THIRD_PARTY_VERIFIED, agent("agent:colleague", "org:other"), false],
  [THIRD_PARTY_VERIFIED, agent("agent:unknown", "org:three"), false],
])("in mode %i, may %j verify? %j", async (mode, verifierAgent, allowed) => {
  const request = submission({ terms: { mode }, result: { verifierAgent, decision: Decision.INCONCLUSIVE } });
  if (allowed) await submit(request);
  else expect(await refusal(submit(request))).toMatchObject({ reason: "CONFLICT_OF_INTEREST" });
});

test.each<[verifier: string, named: string[], allowed: boolean]>([
  ["agent:fourth", ["agent:fourth"], true],
  ["agent:third", ["agent:fourth"], false],
  ["agent:sock", ["agent:sock"], false],
  ["agent:colleague", ["agent:colleague"], false],
])("may %s verify if the buyer names %j? %j", async (verifier, namedVerifiers, allowed) => {
  const request = submission({
    terms: { acceptableVerifiers: namedVerifiers },
    result: { verifierAgent: agent(verifier, "org:any"), decision: Decision.INCONCLUSIVE },
  });
  if (allowed) await submit(request);
  else expect(await refusal(submit(request))).toMatchObject({ reason: "CONFLICT_OF_INTEREST" });
});

test("accepts another result after an inconclusive one, but none after a pass or a fail", async () => {
  const receiptId = "receipt-final";
  const next = (decision: Decision) => submit(submission({ result: { receiptId, decision } }));
  await next(Decision.INCONCLUSIVE);
  await next(Decision.INCONCLUSIVE);
  await next(Decision.FAIL);
  for (const decision of [Decision.PASS, Decision.FAIL, Decision.INCONCLUSIVE]) {
    expect(await refusal(next(decision))).toMatchObject({ reason: "VERIFICATION_FINAL" });
  }
  const { results } = await platform.results.listVerificationResults({ receiptId });
  expect(results.map(({ decision }) => decision)).toEqual([
    Decision.INCONCLUSIVE,
    Decision.INCONCLUSIVE,
    Decision.FAIL,
  ]);
  const pages: number[] = [];
  let pageToken = "";
  do {
    const page = await platform.results.listVerificationResults({ receiptId, pageSize: 2, pageToken });
    pages.push(page.results.length);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  expect(pages).toEqual([2, 1]);
  const both = await Promise.allSettled(
    [Decision.PASS, Decision.FAIL].map((decision) =>
      submit(submission({ result: { receiptId: "receipt-race", decision } })),
    ),
  );
  expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
});

test("refuses a second result under an id, a malformed digest, and a caller that is not a service", async () => {
  const request = submission();
  await submit(request);
  const other = submission({ result: { ...(request.result as Result), score: 1 } });
  expect(await refusal(submit(other))).toMatchObject({ reason: "REQUEST_ID_REUSED" });
  for (const digest of [HELLO.slice(7), HELLO.toUpperCase(), "md5:00"]) {
    const odd = submission({ artifacts: [{ ...PAYLOAD, digest }] });
    expect(await refusal(submit(odd))).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: ["artifacts[0].digest"],
    });
  }
  expect(
    await refusal(platform.results.submitVerificationResult(submission(), asCaller(worker))),
  ).toMatchObject({
    reason: "CALLER_NOT_ALLOWED",
  });
});

test("stores artifacts under their digest and accepts them as evidence", async () => {
  const content = Buffer.from("hello");
  const stored = await platform.results.storeArtifact({ content, mediaType: "text/plain", digest: HELLO });
  expect(stored).toMatchObject({ uri: `urn:depute:artifact:${HELLO}`, digest: HELLO });
  expect(await platform.results.storeArtifact({ content })).toEqual(stored);
  const read = await platform.results.getArtifact({ digest: HELLO });
  expect([Buffer.from(read.content).toString(), read.mediaType]).toEqual(["hello", "text/plain"]);
  await submit(submission({ artifacts: [{ ...PAYLOAD, uri: stored.uri }] }));
  const wrong = platform.results.storeArtifact({ content: Buffer.from("hullo"), digest: HELLO });
  expect(await refusal(wrong)).toMatchObject({ reason: "DIGEST_MISMATCH", metadata: { expected: HELLO } });
  const none = `sha256:${"0".repeat(64)}`;
  expect(await refusal(platform.results.getArtifact({ digest: none }))).toMatchObject({
    reason: "ARTIFACT_NOT_FOUND",
  });
});

test("recomputes a result's content hash and compares it", async () => {
  const result = value({ b: 1, a: [null] });
  const { hash, matches } = await platform.results.checkResultHash({ result });
  expect(matches).toBe(false);
  expect(await platform.results.checkResultHash({ result, resultHash: hash.slice(0, 19) })).toMatchObject({
    hash,
    matches: true,
  });
  const other = { result: value({ b: 2, a: [null] }), resultHash: hash };
  expect((await platform.results.checkResultHash(other)).matches).toBe(false);
});

describe("evidence at other hosts", () => {
  const server = createServer((request, response) => {
    questions.push(request.url ?? "");
    if (request.url === "/hello") response.end("hello");
    else if (request.url === "/away") response.writeHead(302, { location: "/hello" }).end();
    else if (request.url === "/long") response.end(Buffer.alloc(17 * 1024 * 1024));
    else response.writeHead(404).end();
  });
  const questions: string[] = [];
  let open: Platform;
  let origin: string;
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    origin = `http://${host}`;
    open = await startPlatform(["--verifier-evidence-hosts", host], undefined, registry());
  });
  afterAll(async () => {
    await open.stop();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const check = async (target: Platform, uri: string, digest = HELLO) => {
    const { artifacts } = await target.results.checkArtifacts({ artifacts: [{ ...PAYLOAD, uri, digest }] });
    return artifacts[0]?.verdict;
  };

  test("is not fetched unless its host is allowed", async () => {
    expect(await check(platform, `${origin}/hello`)).toBe(ArtifactVerdict.NOT_CHECKED);
    expect(await check(open, "https://example.com/hello")).toBe(ArtifactVerdict.NOT_CHECKED);
    expect(await check(open, "ftp://127.0.0.1/hello")).toBe(ArtifactVerdict.NOT_CHECKED);
    expect(questions).toEqual([]);
  });

  test.each([
    ["/hello", HELLO, ArtifactVerdict.MATCHES],
    ["/hello", `sha256:${"0".repeat(64)}`, ArtifactVerdict.DIFFERS],
    ["/none", HELLO, ArtifactVerdict.MISSING],
    ["/away", HELLO, ArtifactVerdict.MISSING],
    ["/long", HELLO, ArtifactVerdict.MISSING],
  ])("at %s is compared with %.12s", async (path, digest, verdict) => {
    expect(await check(open, `${origin}${path}`, digest)).toBe(verdict);
  });

  test("supports a pass only if its digest matches", async () => {
    const at = (path: string) => submission({ artifacts: [{ ...PAYLOAD, uri: `${origin}${path}` }] });
    await open.results.submitVerificationResult(at("/hello"));
    const refused = await refusal(open.results.submitVerificationResult(at("/none")));
    expect(refused).toMatchObject({ reason: "EVIDENCE_INSUFFICIENT" });
  });
});
