import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateKeypair, newId, signObject } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { offerOf, requestOf } from "../agenta/market.ts";
import { type Json, startPlatform, type TestPlatform } from "./platform.ts";

const buyer = generateKeypair(engine);
const seller = generateKeypair(engine);
const BUYER = "acme-buyer";
const SELLER = "globex-seller";
const SECRETS = { acme: "secret-of-acme", globex: "secret-of-globex" };

let platform: TestPlatform;
let folder: string;
/** A task that belongs to the organization acme. The task's delegate is an agent of the organization globex. */
let taskId: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "depute-owners-"));
  const file = join(folder, "credentials.json");
  const entry = (principal: string, organization: keyof typeof SECRETS) => ({
    principal,
    organization,
    sha256: createHash("sha256").update(SECRETS[organization]).digest("hex"),
  });
  writeFileSync(
    file,
    JSON.stringify([entry(buyer.principal.id, "acme"), entry(seller.principal.id, "globex")]),
  );
  const flags = ["--auth", "required", "--credentials-file", file, "--minters", buyer.principal.id];
  platform = await startPlatform(flags);
  await acme("registry.v1.AgentService/RegisterAgent", {
    agent: { id: BUYER, version: "1", organization: "acme", principal: buyer.principal.id },
  });
  await globex("registry.v1.AgentService/RegisterAgent", {
    agent: { id: SELLER, version: "1", organization: "globex", principal: seller.principal.id },
  });
  taskId = await created({ agentId: SELLER, description: "count" });
});

afterAll(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true, force: true });
});

const acme = (method: string, body: object) => post("acme", method, body);
const globex = (method: string, body: object) => post("globex", method, body);

/** Calls a method by Connect with JSON, with the secret of an organization's principal. */
async function post(organization: keyof typeof SECRETS, method: string, body: object): Promise<Json> {
  const asked = REQUEST_IDS.test(method) ? { requestId: crypto.randomUUID(), ...body } : body;
  return document(organization, `/depute.${method}`, asked);
}

/** Posts a document of a protocol to its path, with the secret of an organization's principal. */
async function document(organization: keyof typeof SECRETS, path: string, body: object): Promise<Json> {
  const response = await platform.post(path, body, { authorization: `Bearer ${SECRETS[organization]}` });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${path}: ${JSON.stringify(answer)}`);
  return answer;
}

const REQUEST_IDS =
  /[/](RegisterAgent|CreateTask|ShareContext|CreateKey|MintToken|ReserveSpend|SendMessage)$/;

async function created(draft: object, by = acme): Promise<string> {
  const answer = await by("tasks.v1.TaskService/CreateTask", { draft });
  return answer.task?.id ?? answer.taskId;
}

async function taskOf(id: string): Promise<Json> {
  return (await acme("tasks.v1.TaskService/GetTask", { taskId: id })).task;
}

/** Creates a contract that acme's key has signed. */
function contractOf(): Json {
  const body: Json = {
    ...{ id: newId("ct"), version: "0.1", issuer: buyer.principal.id },
    createdAt: new Date(Date.now() - 1000).toISOString(),
    task: { ...{ title: "Count", description: "Count.", inputs: {} }, outputSchema: { type: "object" } },
    verification: { method: "schema_match" },
    constraints: {
      ...{ maxBudgetMicrocents: 1000, maxChainDepth: 3, requiredCapabilities: ["llm:classify"] },
      deadline: new Date(Date.now() + 7_200_000).toISOString(),
    },
  };
  return signObject(engine, "contract", body, buyer);
}

describe("the organization of a credential owns", () => {
  test("a task", async () => {
    expect(await taskOf(taskId)).toMatchObject({ organization: "acme" });
  });

  test("a child task that an agent of another organization creates", async () => {
    const partId = await created({ agentId: BUYER, description: "a part", parentTaskId: taskId }, globex);
    const { task } = await globex("tasks.v1.TaskService/GetTask", { taskId: partId });
    expect(task).toMatchObject({ parentTaskId: taskId, organization: "acme" });
  });

  test("a shared context", async () => {
    const envelope = { id: "c1", data: Buffer.from("{}").toString("base64"), ttlS: 60, permissions: {} };
    const { context } = await acme("tasks.v1.ContextService/ShareContext", { envelope });
    expect(context).toMatchObject({ organization: "acme" });
    const read = await acme("tasks.v1.ContextService/RequestContext", { contextId: context.id });
    expect(read.context).toMatchObject({ organization: "acme" });
  });

  test("an artifact that the delegate adds to the task", async () => {
    const sha256 = createHash("sha256").update("x").digest("base64");
    const wanted = { taskId, name: "x", sizeBytes: "1", sha256 };
    const { artifact } = await globex("tasks.v1.ArtifactService/CreateArtifact", wanted);
    expect(artifact).toMatchObject({ creator: seller.principal.id, organization: "acme" });
  });

  test("a message", async () => {
    const message = {
      taskId: "talk",
      senderId: BUYER,
      recipientId: SELLER,
      content: "hello",
      attachments: {},
    };
    await acme("tasks.v1.MessageService/SendMessage", { message: { message } });
    const { messages } = await acme("tasks.v1.MessageService/ListConversation", {
      taskId: "talk",
      agentId: BUYER,
    });
    expect(messages).toMatchObject([{ organization: "acme" }]);
  });

  test("an execution, its task, and the review of its start", async () => {
    const offer = offerOf({ seller_agent: { agent_id: SELLER, organization_id: "globex" } });
    await document("globex", "/agenta/offers", offer);
    const request = requestOf(offer, {
      ...{ buyer_agent: { agent_id: BUYER, organization_id: "acme" }, seller_agent_id: SELLER },
      execution_constraints: {
        deadline_at: new Date(Date.now() + 600_000).toISOString(),
        requires_human_approval_before_start: true,
      },
    });
    await document("acme", "/agenta/execution_requests", request);
    const { execution } = await acme("tasks.v1.ExecutionService/GetExecution", {
      requestId: request.request_id,
    });
    expect(execution).toMatchObject({ organization: "acme" });
    expect(await taskOf(execution.taskId)).toMatchObject({ organization: "acme" });
    const reviews = (filter = {}) => acme("verifier.v1.ReviewService/ListReviews", filter);
    const review = { subject: request.request_id, creator: "local", organization: "acme" };
    await expect.poll(async () => (await reviews()).reviews).toMatchObject([review]);
    expect((await reviews({ subject: request.request_id })).reviews).toMatchObject([review]);
    expect((await reviews({ subject: "another subject" })).reviews).toBeUndefined();
  });

  test("a kept key", async () => {
    const { key } = await acme("tokens.v1.KeyService/CreateKey", {});
    const read = await acme("tokens.v1.KeyService/GetKey", { keyId: key.id });
    expect(read.key).toMatchObject({ organization: "acme" });
  });

  test("a delegation and a reservation under its token", async () => {
    const { token, delegationId } = await acme("tokens.v1.TokenService/MintToken", {
      delegatee: buyer.principal.id,
      capabilities: [{ namespace: "llm", action: "classify", resource: "*" }],
      ...{ contractId: newId("ct"), maxBudgetMicrocents: "1000" },
    });
    const { delegation } = await acme("tokens.v1.DelegationService/GetDelegation", { delegationId });
    expect(delegation).toMatchObject({ organization: "acme" });
    const reserve = { token, amountMicrocents: "10" };
    const { reservation } = await acme("tokens.v1.SpendService/ReserveSpend", reserve);
    const read = await acme("tokens.v1.SpendService/GetReservation", { reservationId: reservation.id });
    expect(read.reservation).toMatchObject({ organization: "acme" });
  });

  test("a contract and a stored artifact", async () => {
    const contract = contractOf();
    await acme("verifier.v1.ContractService/CreateContract", {
      contract: { ...contract, verification: { method: "VERIFICATION_METHOD_SCHEMA_MATCH" } },
    });
    const read = await globex("verifier.v1.ContractService/GetContract", { contractId: contract.id });
    expect(read).toMatchObject({ organization: "acme" });
    const content = Buffer.from("evidence").toString("base64");
    const { digest } = await acme("verifier.v1.ResultService/StoreArtifact", { content });
    const stored = await acme("verifier.v1.ResultService/GetArtifact", { digest });
    expect(stored).toMatchObject({ organization: "acme" });
  });
});
