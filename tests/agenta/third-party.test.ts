import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { type Document, fresh, type Market, marketAt, offerOf, requestOf, resultOf } from "./market.ts";

/**
 * Returns a text in the form of a public key. It is the principal of an owner of agents, and also that owner's
 * secret, because the platform identifies callers by secrets.
 */
const key = (letter: string) => `${letter.repeat(42)}A`;
const [SELLER, BUYER, AUDITOR, STRANGER, OPERATOR] = ["S", "B", "U", "X", "O"].map(key) as [
  string,
  string,
  string,
  string,
  string,
];
/** The agents, each with its owner and the organization that its record claims. */
const AGENTS: readonly (readonly [id: string, owner: string, claims: string])[] = [
  ["seller", SELLER, "org:words"],
  ["sock", SELLER, "org:invented"],
  ["buyer", BUYER, "org:buyer"],
  ["auditor", AUDITOR, "org:audit"],
  ["stranger", STRANGER, "org:audit"],
];

const dataDir = mkdtempSync(join(tmpdir(), "depute-third-party-"));
let platform: TestPlatform;
const marketOf = (owner: string): Market =>
  marketAt(platform.url, { authorization: `Bearer ${owner}`, "content-type": "application/json" });

/** Calls an RPC over plain HTTP. */
async function call(owner: string, method: string, body: unknown): Promise<Document> {
  const headers = { authorization: `Bearer ${owner}`, "content-type": "application/json" };
  const response = await fetch(`${platform.url}/depute.${method}`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  return response.json();
}
const prove = async (organization: string, principal: string) => {
  const request = { requestId: fresh("proof"), organization, principal };
  const { proof } = await call(OPERATOR, "registry.v1.OrganizationService/CreateOrganizationProof", request);
  return proof;
};

beforeAll(async () => {
  const file = join(dataDir, "credentials.json");
  const owners = [SELLER, BUYER, AUDITOR, STRANGER, OPERATOR];
  const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
  writeFileSync(file, JSON.stringify(owners.map((principal) => ({ principal, sha256: sha256(principal) }))));
  platform = await startPlatform(
    ["--auth", "required", "--credentials-file", file, "--trust-operators", OPERATOR],
    { dataDir },
  );
  for (const [id, owner, organization] of AGENTS) {
    const agent = { id, version: "1.0.0", organization, principal: owner };
    await call(owner, "registry.v1.AgentService/RegisterAgent", { requestId: fresh("r"), agent });
  }
});
afterAll(async () => {
  await platform.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

const policy = {
  mode: "third_party_verified",
  required_artifacts: ["result_payload"],
  pass_criteria: ["It is right."],
};
const sellerOf = { seller_agent: { agent_id: "seller", organization_id: "org:words" } };
const buyerOf = {
  seller_agent_id: "seller",
  buyer_agent: { agent_id: "buyer", organization_id: "org:buyer" },
};

async function ask(metadata?: JsonObject): Promise<Document> {
  const offer = await marketOf(SELLER).publish(offerOf({ ...sellerOf, verification_policy: policy }));
  return marketOf(BUYER).request(requestOf(offer, { ...buyerOf, ...(metadata && { metadata }) }));
}

/** Returns the receipt of completed work that waits for verification. */
async function completed(metadata?: JsonObject): Promise<Document> {
  const { request_id } = await ask(metadata);
  const take = { agentId: "seller", worker: "w", wait: "5s" };
  const { assignments } = await call(SELLER, "tasks.v1.WorkerService/TakeAssignments", take);
  for (const { lease } of assignments) {
    await call(SELLER, "tasks.v1.WorkerService/StartAssignment", { lease });
    const artifacts = [{ artifactType: "ARTIFACT_TYPE_RESULT_PAYLOAD", uri: "data:,4" }];
    const completion = { lease, output: { full: { score: 0.9 } }, delivery: { artifacts } };
    await call(SELLER, "tasks.v1.WorkerService/CompleteAssignment", completion);
  }
  const receipt = await marketOf(BUYER).newest(request_id);
  expect(receipt.status).toBe("completed");
  return receipt;
}

const judgement = (receipt: Document, agentId: string) => {
  const organization_id = AGENTS.find(([id]) => id === agentId)?.[2] ?? "";
  return resultOf(receipt, { verifier_agent: { agent_id: agentId, organization_id } });
};
const ownerOf = (agentId: string) => AGENTS.find(([id]) => id === agentId)?.[1] ?? "";
async function refused(receipt: Document, agentId: string): Promise<string> {
  const answer = await marketOf(ownerOf(agentId)).post(
    "/agenta/verification_results",
    judgement(receipt, agentId),
  );
  expect([answer.status, answer.body.error.details.reason]).toEqual([403, "CONFLICT_OF_INTEREST"]);
  expect((await marketOf(BUYER).settlement(receipt.request_id)).state).toBe("authorized");
  return answer.body.error.message;
}
async function accepted(receipt: Document, agentId: string): Promise<void> {
  await marketOf(ownerOf(agentId)).verify(judgement(receipt, agentId));
  expect((await marketOf(BUYER).settlement(receipt.request_id)).state).toBe("captured");
}

describe("a third party that verifies", () => {
  test("cannot be a second agent of the seller's key, with any organization", async () => {
    const receipt = await completed();
    expect(await refused(receipt, "sock")).toContain("the same owner");
    await prove("org:invented", SELLER);
    expect(await refused(receipt, "sock")).toContain("the same owner");
  });

  test("cannot be a key that names a proven organization in its record", async () => {
    await prove("org:audit", AUDITOR);
    const receipt = await completed();
    expect(await refused(receipt, "stranger")).toContain("CreateOrganizationProof");
    await accepted(receipt, "auditor");
  });

  test("cannot be one of the parties' proven organization", async () => {
    const proof = await prove("org:audit", SELLER);
    const receipt = await completed();
    expect(await refused(receipt, "auditor")).toContain("the same owner");
    const revoke = { requestId: fresh("revoke"), proofId: proof.id };
    await call(OPERATOR, "registry.v1.OrganizationService/RevokeOrganizationProof", revoke);
    await accepted(receipt, "auditor");
  });

  test("cannot be one whose proof an operator has revoked", async () => {
    const proof = await prove("org:audit", AUDITOR);
    const receipt = await completed();
    const revoke = { requestId: fresh("revoke"), proofId: proof.id };
    await call(OPERATOR, "registry.v1.OrganizationService/RevokeOrganizationProof", revoke);
    expect(await refused(receipt, "auditor")).toContain("no proven organization");
    await prove("org:audit", AUDITOR);
    await accepted(receipt, "auditor");
  });

  test("is the one that the buyer's request names, and no other", async () => {
    await prove("org:audit", AUDITOR);
    const receipt = await completed({ acceptable_verifiers: "stranger" });
    expect(await refused(receipt, "auditor")).toContain("acceptable_verifiers");
    await accepted(receipt, "stranger");
  });

  test.each([
    ["sock", "the same owner"],
    ["buyer", "the same owner"],
    ["nobody-at-all", "not a registered agent"],
    ["two words", "separated by commas"],
  ])("cannot be named as %s: the request is rejected", async (named, message) => {
    const receipt = await ask({ acceptable_verifiers: named });
    expect(receipt).toMatchObject({ status: "rejected", error: { code: "invalid_request" } });
    expect(receipt.error.message).toContain(message);
    expect(receipt.error.details.path).toBe("/metadata/acceptable_verifiers");
  });
});

test("a receipt that settles the payment is not verified, and the refusal says why", async () => {
  await prove("org:audit", AUDITOR);
  const receipt = await completed();
  await accepted(receipt, "auditor");
  const settled = await marketOf(BUYER).newest(receipt.request_id);
  const { status, body } = await marketOf(AUDITOR).post(
    "/agenta/verification_results",
    judgement(settled, "auditor"),
  );
  expect([status, body.error.details.reason]).toEqual([409, "EXECUTION_STATE_CONFLICT"]);
  expect(body.error.message).toContain("settles the payment");
});

test("agents cannot prove organizations, and every caller reads which are proven", async () => {
  const request = { requestId: fresh("proof"), organization: "org:own", principal: SELLER };
  const path = "registry.v1.OrganizationService/CreateOrganizationProof";
  const refusal = await call(SELLER, path, request);
  expect(refusal).toMatchObject({ code: "permission_denied" });
  expect(refusal.message).toContain("the roles operator");
  await prove("org:audit", AUDITOR);
  const list = { organization: "org:audit", principal: AUDITOR };
  const { proofs } = await call(STRANGER, "registry.v1.OrganizationService/ListOrganizationProofs", list);
  expect(proofs).toMatchObject([{ organization: "org:audit", principal: AUDITOR, provenBy: OPERATOR }]);
});
