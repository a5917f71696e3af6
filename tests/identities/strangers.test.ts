import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromJson, type JsonObject, toJsonString } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { ConnectError, createClient } from "@connectrpc/connect";
import { SessionService } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { generateKeypair, newId, signObject } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { fromConnectError } from "@depute/service";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { offerOf, requestOf } from "../agenta/market.ts";
import { ALPHA, BETA, overGrpc } from "../asp/cast.ts";
import { register } from "../asp/platform.ts";
import { invite } from "../asp/scenario.ts";
import { methods, nameOf } from "../contracts/contract-files.ts";
import { type Json, startPlatform, type TestPlatform } from "../gateway/platform.ts";

/** Acme owns the records; globex, without any part in them, reads as a stranger. */
const SECRETS = { acme: "secret-of-acme", seller: "secret-of-the-seller", globex: "secret-of-globex" };
const ada = generateKeypair(engine);
const seller = generateKeypair(engine);
const PRINCIPALS = {
  acme: ada.principal.id,
  seller: seller.principal.id,
  globex: generateKeypair(engine).principal.id,
};
type Party = keyof typeof SECRETS;

const ORGANIZATION = "acme-organization";
const HIDDEN = "acme-hidden-agent";
const SELLER = "acme-hidden-seller";
/** A word in every text that acme's records contain. */
const WORD = "acmesecretword";

/** Real ids, by the kind of their record. */
const ids: Record<string, string> = {};
const digestOf = (text: string) => createHash("sha256").update(text).digest("base64");

/** Ids of the same form that no record has. */
const UNKNOWN: Record<string, string> = {
  agent: "acme-absent-agent",
  uri: "agent://acme-hidden.example/desk/absent",
  task: "019f0000-0000-7000-8000-000000000001",
  external: "absent-external",
  context: "019f0000-0000-7000-8000-000000000002",
  artifact: "019f0000-0000-7000-8000-000000000003",
  session: "019f0000-0000-7000-8000-000000000004",
  conversation: "absent-conversation",
  webhook: "019f0000-0000-7000-8000-000000000005",
  request: "request-000000-absent",
  reservation: "019f0000-0000-7000-8000-000000000006",
  delegation: "del_000000000000",
  revocation: "A".repeat(43),
  key: "019f0000-0000-7000-8000-000000000007",
  review: "019f0000-0000-7000-8000-000000000008",
  proposal: "019f0000-0000-7000-8000-000000000009",
  digest: digestOf("no such evidence"),
  organization: "absent organization",
  principal: generateKeypair(engine).principal.id,
  offer: "offer-absent",
  receipt: "receipt-absent",
  authority: "absent.example",
};

/** How a stranger reads with one id. */
type Reading =
  /** The answer to a real id equals the answer to an unknown id, except for the id. */
  | { readonly of: keyof typeof UNKNOWN; readonly request: (id: string) => JsonObject }
  /** The answer contains nothing of acme. */
  | { readonly list: JsonObject }
  /** The method shows public facts, or only what its request contains. */
  | { readonly open: string };

const task = (request: (id: string) => JsonObject): Reading => ({ of: "task", request });
const agent = (request: (id: string) => JsonObject): Reading => ({ of: "agent", request });
const session = (request: (id: string) => JsonObject): Reading => ({ of: "session", request });
const KNOWS_ID = "the id is the right to read: it has 48 or more random bits, and delegatees need it";

const READINGS: Readonly<Record<string, readonly Reading[]>> = {
  "registry.v1.AgentService/GetAgent": [agent((agentId) => ({ agentId }))],
  "registry.v1.AgentService/GetAgentByUri": [{ of: "uri", request: (uri) => ({ uri }) }],
  "registry.v1.AgentService/ListAgents": [
    { list: {} },
    { of: "organization", request: (organization) => ({ organization }) },
    { of: "principal", request: (principal) => ({ principal }) },
  ],
  "registry.v1.AgentService/GetAgentVersion": [agent((agentId) => ({ agentId, version: "1" }))],
  "registry.v1.AgentService/ListAgentVersions": [agent((agentId) => ({ agentId }))],
  "registry.v1.AgentService/GetAgentCard": [agent((agentId) => ({ agentId }))],
  "registry.v1.AgentService/WatchAgents": [{ list: {} }, agent((agentId) => ({ agentId, sendStart: true }))],
  "registry.v1.AuthorityService/ListAuthorityGrants": [
    { of: "authority", request: (authority) => ({ authority }) },
  ],
  "registry.v1.ClusterService/GetCluster": [{ list: {} }],
  "registry.v1.DiscoveryService/DiscoverCapabilities": [
    { list: { level: 2 } },
    agent((agentId) => ({ agentId, level: 2 })),
    { of: "organization", request: (organization) => ({ organization, level: 2 }) },
  ],
  "registry.v1.DiscoveryService/ResolveCapability": [
    agent((agentId) => ({ agentId, capabilityId: "secret-capability" })),
  ],
  "registry.v1.OrganizationService/ListMembers": [
    { of: "organization", request: (organization) => ({ organization }) },
  ],
  "registry.v1.OrganizationService/ListOrganizationProofs": [
    { open: "proofs are public, because everyone may check who is independent" },
  ],
  "registry.v1.OrganizationService/BatchGetAffiliations": [agent((id) => ({ agentIds: [id] }))],
  "registry.v1.PolicyService/CheckDelegation": [
    agent((id) => ({ fromAgentId: id, toAgentId: "globex-agent", justification: "because" })),
    agent((id) => ({ fromAgentId: "globex-agent", toAgentId: id, justification: "because" })),
  ],
  "registry.v1.PolicyService/CheckToolAccess": [agent((agentId) => ({ agentId, serverId: "s", tool: "t" }))],
  "registry.v1.OfferService/GetOffer": [{ of: "offer", request: (offerId) => ({ offerId }) }],
  "registry.v1.OfferService/ListOfferVersions": [{ of: "offer", request: (offerId) => ({ offerId }) }],
  "registry.v1.OfferService/ListOffers": [
    { list: {} },
    agent((sellerAgentId) => ({ sellerAgentId })),
    { of: "organization", request: (organizationId) => ({ organizationId }) },
  ],
  "registry.v1.ProposalService/GetProposal": [{ of: "proposal", request: (proposalId) => ({ proposalId }) }],
  "registry.v1.ProposalService/ListProposals": [
    { list: {} },
    { of: "principal", request: (proposer) => ({ proposer }) },
  ],
  "registry.v1.TrustService/GetTrust": [agent((agentId) => ({ agentId }))],
  "registry.v1.TrustService/ExplainTrust": [agent((agentId) => ({ agentId }))],
  "tasks.v1.TaskService/GetTask": [
    task((taskId) => ({ taskId })),
    { of: "external", request: (externalId) => ({ externalId, agentId: HIDDEN }) },
  ],
  "tasks.v1.TaskService/ListTasks": [
    { list: {} },
    agent((agentId) => ({ agentId })),
    task((rootTaskId) => ({ rootTaskId })),
    task((parentTaskId) => ({ parentTaskId })),
  ],
  "tasks.v1.TaskService/WatchTasks": [{ list: {} }, agent((agentId) => ({ agentId }))],
  "tasks.v1.TaskService/WatchTask": [task((taskId) => ({ taskId }))],
  "tasks.v1.TaskService/WaitTask": [task((taskId) => ({ taskId, timeout: "0.1s" }))],
  "tasks.v1.TaskService/GetLineage": [task((taskId) => ({ taskId }))],
  "tasks.v1.WorkerService/GetDelegateLimits": [agent((agentId) => ({ agentId }))],
  "tasks.v1.ContextService/RequestContext": [
    { of: "context", request: (contextId) => ({ contextId }) },
    { of: "external", request: (externalId) => ({ externalId }) },
  ],
  "tasks.v1.ArtifactService/ReadArtifact": [{ of: "artifact", request: (artifactId) => ({ artifactId }) }],
  "tasks.v1.ArtifactService/ListArtifacts": [task((taskId) => ({ taskId }))],
  "tasks.v1.SessionService/GetSession": [session((sessionId) => ({ sessionId }))],
  "tasks.v1.SessionService/ListSessions": [{ of: "uri", request: (agentId) => ({ agentId }) }],
  "tasks.v1.SessionService/ListMessages": [session((sessionId) => ({ sessionId }))],
  "tasks.v1.SessionService/WatchSession": [session((sessionId) => ({ sessionId, sendStart: true }))],
  "tasks.v1.SessionService/VerifyTranscript": [{ open: "the request has the whole transcript" }],
  "tasks.v1.SessionService/GetTranscriptKeys": [{ open: "public keys" }],
  "tasks.v1.SessionService/WatchDelegation": [
    session((sessionId) => ({ sessionId, delegationId: "absent", sendStart: true })),
  ],
  "tasks.v1.SessionService/GetEvidence": [session((sessionId) => ({ sessionId, delegationId: "absent" }))],
  "tasks.v1.SessionService/ListEvidence": [{ of: "uri", request: (agentId) => ({ agentId }) }],
  "tasks.v1.SessionService/ListDisputes": [session((sessionId) => ({ sessionId }))],
  "tasks.v1.MessageService/ListInbox": [agent((agentId) => ({ agentId }))],
  "tasks.v1.MessageService/WatchInbox": [agent((agentId) => ({ agentId, sendStart: true }))],
  "tasks.v1.MessageService/ListConversation": [
    { of: "conversation", request: (taskId) => ({ taskId, agentId: "globex-agent" }) },
    agent((agentId) => ({ agentId, taskId: "talk" })),
  ],
  "tasks.v1.MessageService/TraceLineage": [{ of: "conversation", request: (taskId) => ({ taskId }) }],
  "tasks.v1.ConversationService/GetConversation": [task((taskId) => ({ taskId }))],
  "tasks.v1.ConversationService/ListConversations": [{ list: {} }, agent((agentId) => ({ agentId }))],
  "tasks.v1.ConversationService/GetWebhook": [
    task((taskId) => ({ taskId, webhookId: UNKNOWN.webhook ?? "" })),
  ],
  "tasks.v1.ConversationService/ListWebhooks": [task((taskId) => ({ taskId }))],
  "tasks.v1.ExecutionService/GetExecution": [{ of: "request", request: (requestId) => ({ requestId }) }],
  "tasks.v1.ExecutionService/ListExecutions": [
    { list: {} },
    agent((buyerAgentId) => ({ buyerAgentId })),
    agent((sellerAgentId) => ({ sellerAgentId })),
  ],
  "tasks.v1.ExecutionService/ListReceipts": [{ of: "request", request: (requestId) => ({ requestId }) }],
  "tasks.v1.ExecutionService/WatchReceipts": [
    { of: "request", request: (requestId) => ({ requestId, sendStart: true }) },
  ],
  "tasks.v1.ExecutionService/GetSettlement": [{ of: "request", request: (requestId) => ({ requestId }) }],
  "tasks.v1.ExecutionService/GetCallbackKey": [{ open: "a public key" }],
  "tokens.v1.AuditService/ListAuditRecords": [{ list: {} }],
  "tokens.v1.AuditService/WatchAuditRecords": [{ list: {} }],
  "tokens.v1.AuditService/ExportAuditRecords": [{ list: {} }],
  "tokens.v1.AuditService/ListAuditSeals": [{ list: {} }],
  "tokens.v1.AuditService/GetAuditRecordProof": [{ list: { sequence: "1" } }],
  "tokens.v1.TokenService/GetIssuer": [{ open: "the platform's public key" }],
  "tokens.v1.TokenService/GetSigningKeys": [{ open: "public keys" }],
  "tokens.v1.TokenService/PrepareAttenuation": [{ open: "the request has the whole token" }],
  "tokens.v1.TokenService/InspectToken": [{ open: "the request has the whole token" }],
  "tokens.v1.RevocationService/GetRevocationCheckpoint": [{ open: "the log of revocations is public" }],
  "tokens.v1.RevocationService/ListRevocations": [
    { open: "the log of revocations is public: it has ids alone" },
  ],
  "tokens.v1.RevocationService/WatchRevocations": [{ open: "the log of revocations is public" }],
  "tokens.v1.SpendService/GetReservation": [
    { of: "reservation", request: (reservationId) => ({ reservationId }) },
  ],
  "tokens.v1.SpendService/GetBudget": [{ open: "the request has the whole token" }],
  "tokens.v1.DelegationService/GetDelegation": [
    { of: "delegation", request: (delegationId) => ({ delegationId }) },
    { of: "revocation", request: (revocationId) => ({ revocationId }) },
  ],
  "tokens.v1.DelegationService/GetDelegationChain": [
    { of: "delegation", request: (delegationId) => ({ delegationId }) },
    { of: "revocation", request: (revocationId) => ({ revocationId }) },
  ],
  "tokens.v1.DelegationService/ListDelegations": [
    { list: {} },
    { of: "principal", request: (principal) => ({ principal }) },
  ],
  "tokens.v1.DelegationService/ExplainAuthority": [
    task((taskId) => ({ taskId })),
    { of: "delegation", request: (delegationId) => ({ delegation: { delegationId } }) },
  ],
  "tokens.v1.KeyService/GetKey": [{ of: "key", request: (keyId) => ({ keyId }) }],
  "tokens.v1.KeyService/ListKeys": [{ list: {} }],
  "tokens.v1.RootKeyService/ListRootKeys": [{ open: "the platform's public keys" }],
  "verifier.v1.ContractService/PrepareContract": [{ open: "the request has the whole contract" }],
  "verifier.v1.ContractService/GetContract": [{ open: KNOWS_ID }],
  "verifier.v1.ContractService/VerifyContract": [{ open: KNOWS_ID }],
  "verifier.v1.ContractService/ListContracts": [
    { list: {} },
    { of: "principal", request: (issuer) => ({ issuer }) },
  ],
  "verifier.v1.ContractService/GetContractLineage": [{ open: KNOWS_ID }],
  "verifier.v1.ContractService/ListSubContracts": [{ open: KNOWS_ID }],
  "verifier.v1.VerificationService/CheckSchema": [{ open: "the request has the schema" }],
  "verifier.v1.AttestationService/GetVerifier": [{ open: "a public key" }],
  "verifier.v1.AttestationService/PrepareAttestation": [{ open: "the request has the attestation" }],
  "verifier.v1.AttestationService/GetAttestation": [{ open: KNOWS_ID }],
  "verifier.v1.AttestationService/ListAttestations": [{ open: KNOWS_ID }],
  "verifier.v1.AttestationService/VerifyAttestation": [{ open: KNOWS_ID }],
  "verifier.v1.AttestationService/VerifyAttestationTree": [{ open: KNOWS_ID }],
  "verifier.v1.AttestationService/ExportAttestation": [{ open: KNOWS_ID }],
  "verifier.v1.LogService/GetLogHead": [{ open: "the log is public: it has digests alone" }],
  "verifier.v1.LogService/GetInclusionProof": [{ open: "the log is public" }],
  "verifier.v1.LogService/GetConsistencyProof": [{ open: "the log is public" }],
  "verifier.v1.LogService/ListLogEntries": [{ list: {} }],
  "verifier.v1.WitnessService/GetWitnessedPlatform": [
    { of: "principal", request: (platform) => ({ platform }) },
  ],
  "verifier.v1.WitnessService/ListWitnessedPlatforms": [{ list: {} }],
  "verifier.v1.ReviewService/GetReview": [{ of: "review", request: (reviewId) => ({ reviewId }) }],
  "verifier.v1.ReviewService/ListReviews": [
    { list: {} },
    { of: "principal", request: (reviewer) => ({ reviewer }) },
  ],
  "verifier.v1.ReviewService/WatchReviews": [{ list: {} }],
  "verifier.v1.ResultService/GetArtifact": [{ open: "the digest of the content is the right to read" }],
  "verifier.v1.ResultService/CheckArtifacts": [{ of: "digest", request: (id) => ({ artifacts: [id] }) }],
  "verifier.v1.ResultService/ListVerificationResults": [
    { of: "receipt", request: (receiptId) => ({ receiptId }) },
  ],
  "verifier.v1.ResultService/CheckResultHash": [{ open: "the request has the result" }],
};

const reads = methods.filter(({ idempotency }) => idempotency === Level.NO_SIDE_EFFECTS);
const STREAM_MS = 300;

let folder: string;
let platform: TestPlatform;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "depute-strangers-"));
  const file = join(folder, "credentials.json");
  const organizations: Record<Party, string> = { acme: ORGANIZATION, seller: ORGANIZATION, globex: "globex" };
  const entries = (Object.keys(SECRETS) as Party[]).map((party) => ({
    principal: PRINCIPALS[party],
    organization: organizations[party],
    sha256: createHash("sha256").update(SECRETS[party]).digest("hex"),
  }));
  writeFileSync(file, JSON.stringify(entries));
  platform = await startPlatform(["--credentials-file", file, "--minters", PRINCIPALS.acme]);
  await createRecords();
}, 60_000);
afterAll(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function post(party: Party, method: string, body: object): Promise<Json> {
  const answer = await platform.post(`/depute.${method}`, body, {
    authorization: `Bearer ${SECRETS[party]}`,
  });
  const document = (await answer.json()) as Json;
  if (!answer.ok) throw new Error(`${method}: ${JSON.stringify(document)}`);
  return document;
}

async function document(party: Party, path: string, body: object): Promise<Json> {
  const answer = await platform.post(path, body, { authorization: `Bearer ${SECRETS[party]}` });
  if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`);
  return answer.json();
}

async function createRecords(): Promise<void> {
  const requestId = () => crypto.randomUUID();
  const uri = "agent://acme-hidden.example/desk/agent";
  const card = {
    ...{ agentId: uri, name: WORD, capabilities: { values: ["c"] } },
    signingPublicKey: { kty: "OKP", crv: "Ed25519", x: PRINCIPALS.acme },
  };
  const member = { version: "1", organization: ORGANIZATION, visibility: "AGENT_VISIBILITY_ORGANIZATION" };
  await post("acme", "registry.v1.AgentService/RegisterAgent", {
    requestId: requestId(),
    agent: { id: HIDDEN, ...member, principal: PRINCIPALS.acme, displayName: WORD, card },
  });
  await post("acme", "registry.v1.OrganizationService/AdmitMember", {
    organization: ORGANIZATION,
    principal: PRINCIPALS.seller,
  });
  const { proposal } = await post("acme", "registry.v1.ProposalService/CreateProposal", {
    ...{ requestId: requestId(), justification: WORD },
    organizationProof: { organization: ORGANIZATION },
  });
  await post("seller", "registry.v1.AgentService/RegisterAgent", {
    requestId: requestId(),
    agent: { id: SELLER, ...member, principal: PRINCIPALS.seller },
  });
  await post("globex", "registry.v1.AgentService/RegisterAgent", {
    requestId: requestId(),
    agent: { id: "globex-agent", version: "1", principal: PRINCIPALS.globex },
  });
  const created = await post("acme", "tasks.v1.TaskService/CreateTask", {
    requestId: requestId(),
    draft: { agentId: HIDDEN, description: WORD, externalId: "acme-external" },
  });
  const taskId = created.task?.id ?? created.taskId;
  const envelope = {
    id: "acme-external",
    data: Buffer.from("{}").toString("base64"),
    ttlS: 600,
    permissions: {},
  };
  const shared = await post("acme", "tasks.v1.ContextService/ShareContext", {
    requestId: requestId(),
    envelope,
  });
  const written = await post("acme", "tasks.v1.ArtifactService/CreateArtifact", {
    ...{ taskId, name: WORD, sizeBytes: "1", sha256: digestOf("x") },
  });
  const message = {
    ...{ taskId: "acme-conversation", senderId: HIDDEN, recipientId: SELLER, content: WORD, attachments: {} },
  };
  await post("acme", "tasks.v1.MessageService/SendMessage", {
    requestId: requestId(),
    message: { message },
  });
  const offer = offerOf({ seller_agent: { agent_id: SELLER, organization_id: ORGANIZATION } });
  await document("seller", "/agenta/offers", offer);
  const execution = requestOf(offer, {
    ...{ buyer_agent: { agent_id: HIDDEN, organization_id: ORGANIZATION }, seller_agent_id: SELLER },
    execution_constraints: {
      deadline_at: new Date(Date.now() + 600_000).toISOString(),
      requires_human_approval_before_start: true,
    },
  });
  await document("acme", "/agenta/execution_requests", execution);
  const reviews = () => post("acme", "verifier.v1.ReviewService/ListReviews", {});
  await vi.waitFor(async () => expect((await reviews()).reviews).toHaveLength(1), { timeout: 10_000 });
  const key = await post("acme", "tokens.v1.KeyService/CreateKey", { requestId: requestId() });
  const minted = await post("acme", "tokens.v1.TokenService/MintToken", {
    ...{ requestId: requestId(), delegatee: PRINCIPALS.acme, contractId: newId("ct") },
    ...{
      capabilities: [{ namespace: "llm", action: "classify", resource: "*" }],
      maxBudgetMicrocents: "1000",
    },
  });
  const reserved = await post("acme", "tokens.v1.SpendService/ReserveSpend", {
    ...{ requestId: requestId(), token: minted.token, amountMicrocents: "10" },
  });
  const contract = signObject(
    engine,
    "contract",
    {
      ...{ id: newId("ct"), version: "0.1", issuer: PRINCIPALS.acme },
      createdAt: new Date(Date.now() - 1000).toISOString(),
      task: { title: WORD, description: WORD, inputs: {}, outputSchema: { type: "object" } },
      verification: { method: "schema_match" },
      constraints: {
        ...{ maxBudgetMicrocents: 1000, maxChainDepth: 3, requiredCapabilities: ["llm:classify"] },
        deadline: new Date(Date.now() + 7_200_000).toISOString(),
      },
    } as Json,
    ada,
  );
  await post("acme", "verifier.v1.ContractService/CreateContract", {
    contract: { ...contract, verification: { method: "VERIFICATION_METHOD_SCHEMA_MATCH" } },
  });
  const stored = await post("acme", "verifier.v1.ResultService/StoreArtifact", {
    content: Buffer.from(WORD).toString("base64"),
  });
  for (const one of [ALPHA, BETA]) await register({ url: platform.url, ...platform.clients }, one);
  const opened = await invite(overGrpc(createClient(SessionService, platform.transport)));
  Object.assign(ids, {
    ...{ agent: HIDDEN, uri, task: taskId, external: "acme-external", context: shared.context.id },
    ...{ artifact: written.artifact.id, session: opened.sessionId, conversation: "acme-conversation" },
    ...{ request: execution.request_id, reservation: reserved.reservation.id },
    ...{ delegation: minted.delegationId, revocation: minted.revocationId, key: key.key.id },
    ...{ review: (await reviews()).reviews[0].id, digest: stored.digest, organization: ORGANIZATION },
    ...{ principal: PRINCIPALS.acme, offer: offer.offer_id, receipt: execution.request_id },
    ...{ authority: "acme-hidden.example", proposal: proposal.id },
  });
}

/**
 * Returns what a stranger gets: the status and the body, or a stream's messages of STREAM_MS milliseconds and its
 * error.
 */
async function seen(name: string, request: JsonObject): Promise<string> {
  const method = reads.find((each) => nameOf(each) === `depute.${name}`);
  if (method === undefined) throw new Error(`${name} is no read`);
  const headers = { authorization: `Bearer ${SECRETS.globex}` };
  if (method.methodKind === "unary") {
    const answer = await platform.post(`/depute.${name}`, request, headers);
    return `${answer.status} ${await answer.text()}`;
  }
  const ended = new AbortController();
  const timer = setTimeout(() => ended.abort(), STREAM_MS);
  async function* one(): AsyncIterable<never> {
    if (method !== undefined) yield fromJson(method.input, request) as never;
  }
  const texts: string[] = [];
  try {
    const answer = await platform.transport.stream(method as never, ended.signal, undefined, headers, one());
    for await (const message of answer.message) texts.push(toJsonString(method.output, message as never));
  } catch (error) {
    const { code, rawMessage } = ConnectError.from(error);
    texts.push(`${code} ${ended.signal.aborted ? "" : rawMessage} ${JSON.stringify(metadataOf(error))}`);
  } finally {
    clearTimeout(timer);
  }
  return texts.join("\n");
}

function metadataOf(error: unknown): unknown {
  const { reason, metadata } = fromConnectError(error);
  return { reason, metadata };
}

test("every read is in the table", () => {
  expect(
    Object.keys(READINGS)
      .map((name) => `depute.${name}`)
      .sort(),
  ).toEqual(reads.map(nameOf).sort());
});

describe("a stranger gets the same answer for a real id and an unknown id", () => {
  const cases = Object.entries(READINGS).flatMap(([name, readings]) =>
    readings.flatMap((reading) => ("of" in reading ? [[name, reading.of, reading] as const] : [])),
  );
  test.each(cases)("%s by %s", async (name, of, { request }) => {
    const [real = "", unknown = ""] = [ids[of], UNKNOWN[of]];
    expect(real).not.toBe("");
    const hide = (text: string, id: string) =>
      text.replaceAll(id, "<id>").replaceAll(encodeURIComponent(id), "<id>");
    const answers = [
      hide(await seen(name, request(real)), real),
      hide(await seen(name, request(unknown)), unknown),
    ];
    // Binary details of an error repeat its JSON form.
    const [ofReal, ofUnknown] = answers.map((text) => text.replaceAll(/"value":"[^"]*"/g, ""));
    expect(ofReal).toBe(ofUnknown);
    expect(ofReal).not.toContain(WORD);
  });
});

describe("a list shows a stranger no record of acme", () => {
  const cases = Object.entries(READINGS).flatMap(([name, readings]) =>
    readings.flatMap((reading) => ("list" in reading ? [[name, reading.list] as const] : [])),
  );
  test.each(cases)("%s %j", async (name, request) => {
    const text = await seen(name, request);
    const found = [WORD, ...Object.values(ids)].filter((needle) => text.includes(needle));
    expect(found).toEqual([]);
  });
});

test("an artifact shows a stranger its content, which the digest names, and not its owner", async () => {
  const text = await seen("verifier.v1.ResultService/GetArtifact", { digest: ids.digest ?? "" });
  expect(text).toContain(Buffer.from(WORD).toString("base64"));
  expect(text).not.toContain(ORGANIZATION);
});

test("the metrics contain no organization, principal or record", async () => {
  const text = await (await fetch(`${platform.url}/metrics`)).text();
  expect(text).toContain("depute_rpc_requests_total");
  const needles = [WORD, ...Object.values(ids), ...Object.values(PRINCIPALS), "globex"];
  expect(needles.filter((needle) => text.includes(needle))).toEqual([]);
});
