import {
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { ConnectError, createClient } from "@connectrpc/connect";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { ExampleSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { createGrpcJsTransport, type EchoServer, startEchoServer } from "@depute/service/testing";
import { MODULE_NAMES, MODULES } from "depute";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bytes, capability, introduce, startPlatform, type TestPlatform, value } from "./platform.ts";

const MIB = 1024 * 1024;

/**
 * For each method whose response contains a list: the way in which the response stays within its size limit.
 * A new method needs a line here.
 */
const LISTS: Readonly<Record<string, string>> = {
  "depute.registry.v1.AgentService.ListAgents": "cut, page_token",
  "depute.registry.v1.AgentService.PublishCapabilities": "refused where larger, before anything is stored",
  "depute.registry.v1.AgentService.ListAgentVersions": "cut, page_token",
  "depute.registry.v1.ClusterService.GetCluster": "1,000 replicas of 600 bytes",
  "depute.registry.v1.DiscoveryService.DiscoverCapabilities": "cut, page_token",
  "depute.registry.v1.OfferService.ListOfferVersions": "cut, page_token",
  "depute.registry.v1.OfferService.ListOffers": "cut, page_token",
  "depute.registry.v1.AuthorityService.ListAuthorityGrants": "1,000 keys, names and times",
  "depute.registry.v1.OrganizationService.BatchGetAffiliations": "ids of the request",
  "depute.registry.v1.OrganizationService.ListOrganizationProofs": "1,000 keys and times",
  "depute.registry.v1.OrganizationService.ListMembers": "1,000 keys and times",
  "depute.registry.v1.OrganizationService.PurgeOrganization": "20 kinds of records, of 500 bytes",
  "depute.registry.v1.ProposalService.ListProposals": "cut, page_token",
  "depute.registry.v1.TrustService.ExplainTrust": "cut, page_token",
  "depute.tasks.v1.ArtifactService.ListArtifacts": "cut, page_token",
  "depute.tasks.v1.ConversationService.ListConversations": "cut, page_token",
  "depute.tasks.v1.ConversationService.ListWebhooks": "16 addresses of a task",
  "depute.tasks.v1.ExecutionService.ListExecutions": "cut, page_token",
  "depute.tasks.v1.ExecutionService.ListReceipts": "cut, page_token",
  "depute.tasks.v1.MessageService.ListInbox": "cut, page_token",
  "depute.tasks.v1.MessageService.ListConversation": "cut, page_token",
  "depute.tasks.v1.SessionService.ListSessions": "cut, page_token",
  "depute.tasks.v1.SessionService.ListMessages": "cut, page_token",
  "depute.tasks.v1.SessionService.ListEvidence": "cut, page_token",
  "depute.tasks.v1.SessionService.ListDisputes": "cut, page_token",
  "depute.tasks.v1.TaskService.BatchCreateTasks": "100 ids or errors of 6 KB",
  "depute.tasks.v1.TaskService.ListTasks": "cut, page_token",
  "depute.tasks.v1.TaskService.GetLineage": "tasks without input and output, as deep as a tree may be",
  "depute.tasks.v1.WorkerService.TakeAssignments": "cut, the next call; what does not fit stays queued",
  "depute.tasks.v1.WorkerService.HeartbeatAssignment": "answers of 1 MiB in all",
  "depute.tasks.v1.WorkerService.BatchCompleteAssignments": "100 states or errors of 6 KB",
  "depute.tokens.v1.AuditService.GetAuditRecordProof": "40 hashes",
  "depute.tokens.v1.AuditService.ListAuditRecords": "cut, page_token",
  "depute.tokens.v1.AuditService.ListAuditSeals": "1,000 seals of 200 bytes",
  "depute.tokens.v1.DelegationService.GetDelegationChain": "33 blocks of one token of 16,000 characters",
  "depute.tokens.v1.DelegationService.ListDelegations": "cut, page_token",
  "depute.tokens.v1.DelegationService.PurgeOrganization": "20 kinds of records, of 500 bytes",
  "depute.tokens.v1.KeyService.ListKeys": "1,000 keys and times",
  "depute.tokens.v1.RootKeyService.ListRootKeys": "1,000 keys, times and statements of 400 bytes",
  "depute.tokens.v1.RevocationService.ListRevocations": "1,000 ids, keys and signatures",
  "depute.tokens.v1.SpendService.GetBudget": "33 levels of numbers",
  "depute.tokens.v1.TokenService.ExchangeToken": "64 capabilities of one token of 16,000 characters",
  "depute.tokens.v1.TokenService.GetIssuer": "keys of a setting, and 1,000 retired roots",
  "depute.tokens.v1.TokenService.RecordToken": "33 blocks of one token of 16,000 characters",
  "depute.tokens.v1.TokenService.InspectToken": "33 blocks of one token of 16,000 characters",
  "depute.tokens.v1.TokenService.VerifyToken": "33 blocks of one token of 16,000 characters",
  "depute.verifier.v1.AttestationService.ListAttestations": "pages of 1 MiB, page_token",
  "depute.verifier.v1.AttestationService.VerifyAttestation": "the attestation of the request, judged",
  "depute.verifier.v1.AttestationService.VerifyAttestationTree": "findings about the tree of the request",
  "depute.verifier.v1.ContractService.VerifyContract": "the contract of the request, judged",
  "depute.verifier.v1.ContractService.ListContracts": "pages of 1 MiB, page_token",
  "depute.verifier.v1.ContractService.DecomposeContract": "ids",
  "depute.verifier.v1.ContractService.GetContractLineage": "ids",
  "depute.verifier.v1.ContractService.ListSubContracts": "cut, page_token",
  "depute.verifier.v1.ContractService.PurgeOrganization": "20 kinds of records, of 500 bytes",
  "depute.verifier.v1.LogService.AppendSessionHead": "64 hashes",
  "depute.verifier.v1.LogService.GetInclusionProof": "64 hashes",
  "depute.verifier.v1.LogService.GetConsistencyProof": "64 hashes",
  "depute.verifier.v1.LogService.ListLogEntries": "1,000 digests and times",
  "depute.verifier.v1.ResultService.CheckArtifacts": "findings about the artifacts of the request",
  "depute.verifier.v1.ResultService.SubmitVerificationResult": "findings about the artifacts of the request",
  "depute.verifier.v1.ResultService.ListVerificationResults": "cut, page_token",
  "depute.verifier.v1.ReviewService.ListReviews": "cut, page_token",
  "depute.verifier.v1.VerificationService.CheckSchema": "20 violations",
  "depute.verifier.v1.WitnessService.ListWitnessedPlatforms": "1,000 records of two heads, of 1 KB",
  "lf.a2a.v1.A2AService.CancelTask": "one task with its newest 100 messages",
  "lf.a2a.v1.A2AService.GetExtendedAgentCard": "the card of one agent",
  "lf.a2a.v1.A2AService.GetTask": "one task with its newest 100 messages",
  "lf.a2a.v1.A2AService.ListTaskPushNotificationConfigs": "16 addresses of a task",
  "lf.a2a.v1.A2AService.ListTasks": "the page of ConversationService.ListConversations",
  "nekte.v1.Nekte.Discover": "refused where larger; level, filter and top_k narrow it",
  "nekte.v1.Nekte.Verify": "names of checks",
};

const nameOf = ({ parent, name }: DescMethod) => `${parent.typeName}.${name}`;
const isList = ({ fieldKind }: DescField) => fieldKind === "list" || fieldKind === "map";
const services = [...new Set(MODULE_NAMES.flatMap((name) => MODULES[name].descriptors))];
const listing = services
  .flatMap(({ methods }) => methods)
  .filter(({ methodKind, output }) => methodKind === "unary" && output.fields.some(isList));

test("each method that returns a list states how its answer stays within the limit", () => {
  expect(listing.map(nameOf).sort()).toEqual(Object.keys(LISTS).sort());
});

/** Builds an answer whose first list has this many elements, each of this many bytes. */
function answerOf(output: DescMessage, elements: number, bytes: number): Message {
  const field = output.fields.find(({ fieldKind }) => fieldKind === "list");
  if (field?.fieldKind !== "list") throw new Error(`${output.typeName} has no list`);
  const element = () => {
    if (field.listKind !== "message") return isText(field) ? "x".repeat(bytes) : new Uint8Array(bytes);
    const message = create(field.message);
    // Adds an unknown field whose length can be chosen freely.
    message.$unknown = [{ no: 50_000, wireType: 2, data: lengthPrefixed(bytes) }];
    return message;
  };
  return create(output, { [field.localName]: Array.from({ length: elements }, element) } as never);
}

function isText(field: DescField): boolean {
  return "scalar" in field && field.scalar === ScalarType.STRING;
}

function lengthPrefixed(length: number): Uint8Array {
  const prefix: number[] = [];
  for (let rest = length; rest > 0; rest >>>= 7) prefix.push((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
  const bytes = new Uint8Array(prefix.length + length);
  bytes.set(prefix);
  return bytes;
}

describe.each([
  ["the fast path", true],
  ["Connect's adapter", false],
])("by %s, an answer of several elements above 3 MiB", (_path, fast) => {
  let server: EchoServer;
  let transport: ReturnType<typeof createGrpcJsTransport>;
  beforeAll(async () => {
    server = await startEchoServer({
      fast,
      validated: false,
      maxRequestBytes: MIB,
      routes(router) {
        for (const method of listing) {
          router.rpc(method as never, (() => answerOf(method.output, 2, 2 * MIB)) as never);
        }
      },
    });
    transport = createGrpcJsTransport(`127.0.0.1:${server.server.port}`);
  });
  afterAll(async () => {
    transport.close();
    await server.server.close(0);
  });

  test.each(listing.map((method) => [nameOf(method), method] as const))(
    "of %s is not sent",
    async (_, method) => {
      const client = createClient(method.parent, transport) as Record<
        string,
        (request: object) => Promise<Message>
      >;
      const refused = client[method.localName]?.({}).catch((error: unknown) => ConnectError.from(error));
      const [info] = ((await refused) as ConnectError).findDetails(ErrorInfoSchema);
      expect(info).toMatchObject({
        reason: "LIMIT_EXCEEDED",
        metadata: { limit: "answer_bytes", max: "3145728" },
      });
    },
  );
});

describe("a worker of an agent with more waiting tasks than an answer holds", () => {
  let platform: TestPlatform;
  beforeAll(async () => {
    platform = await startPlatform();
    await introduce(platform, "heavy");
  }, 60_000);
  afterAll(() => platform.stop());

  test("gets the tasks that fit; the rest stays queued without a lease, for the next call", async () => {
    const { tasks, workers } = platform.clients;
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) {
      const draft = { agentId: "heavy", input: value("x".repeat(MIB - 100)) };
      const { task } = await tasks.createTask({ requestId: `r${i}`, draft });
      ids.push(task?.id ?? "");
    }
    const givenIds: string[] = [];
    for (const expected of [2, 2, 1]) {
      const request = { agentId: "heavy", worker: "w", capacity: 16, knownTaskIds: givenIds };
      const { assignments } = await workers.takeAssignments(request);
      expect(assignments.length).toBe(expected);
      givenIds.push(...assignments.map(({ lease }) => lease?.taskId ?? ""));
      for (const id of ids) {
        const { task } = await tasks.getTask({ taskId: id });
        expect(task?.status).toBe(givenIds.includes(id) ? TaskStatus.ACCEPTED : TaskStatus.PENDING);
      }
    }
    expect(givenIds).toEqual(ids);
    // A worker that names no task as known, as after a lost answer, gets the first portion again.
    const lostTasks = await workers.takeAssignments({ agentId: "heavy", worker: "w", capacity: 16 });
    expect(lostTasks.assignments.length).toBe(2);
  });

  test.each<[string, (token: string) => Promise<{ found: number; nextPageToken: string }>]>([
    [
      "ListAgents",
      async (pageToken) => {
        const { agents, nextPageToken } = await platform.clients.agents.listAgents({
          organization: "large",
          pageToken,
        });
        return { found: agents.length, nextPageToken };
      },
    ],
    [
      "ListAgentVersions",
      async (pageToken) => {
        const { versions, nextPageToken } = await platform.clients.agents.listAgentVersions({
          agentId: "l4",
          pageToken,
        });
        return { found: versions.length, nextPageToken };
      },
    ],
    [
      "DiscoverCapabilities",
      async (pageToken) => {
        const request = { organization: "large", level: 2, pageToken };
        const { capabilities, nextPageToken } =
          await platform.clients.discovery.discoverCapabilities(request);
        return { found: capabilities.length, nextPageToken };
      },
    ],
  ])("%s of large elements continues by page token until all are read", async (name, read) => {
    const manifest = (id: string, letter: string) => ({ id, systemPrompt: letter.repeat(MIB) });
    const register = (id: string, letter: string) =>
      platform.clients.agents.registerAgent({
        requestId: crypto.randomUUID(),
        agent: { id, organization: "large", manifest: manifest(id, letter) },
      });
    for (let i = 0; i < 5; i++) await register(`l${i}`, "a");
    if (name === "ListAgentVersions") for (const letter of ["b", "c", "d", "e"]) await register("l4", letter);
    if (name === "DiscoverCapabilities") {
      const example = { input: bytes({}), output: bytes({ text: "x".repeat(60_000) }) };
      for (let i = 0; i < 5; i++) {
        const examples = Array.from({ length: 14 }, () => create(ExampleSchema, example));
        const large = { ...capability(`c${i}`), examples };
        await platform.clients.agents.publishCapabilities({
          requestId: crypto.randomUUID(),
          agentId: `l${i}`,
          capabilities: [large],
        });
      }
    }
    const pages: number[] = [];
    for (let token = ""; pages.length === 0 || token !== ""; ) {
      const { found, nextPageToken } = await read(token);
      pages.push(found);
      token = nextPageToken;
    }
    expect(pages.reduce((sum, found) => sum + found, 0)).toBe(5);
    expect(pages.length).toBeGreaterThan(1);
  });
});
