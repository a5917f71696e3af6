import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { holderHeaders } from "@depute/client";
import { SerializedDCTSchema } from "@depute/contracts/delegateos/v0/token_pb";
import { createRevocation, generateKeypair, type Keypair, newId, signObject } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  call,
  error,
  introduce,
  type Json,
  json,
  notification,
  result,
  startPlatform,
  type TestPlatform,
  value,
} from "./platform.ts";

let platform: TestPlatform;
const delegator = generateKeypair(engine);
const worker = generateKeypair(engine);
/** The key of the agent `declared`, whose record declares capabilities. */
const declared = generateKeypair(engine);
const stranger = generateKeypair(engine);

beforeAll(async () => {
  platform = await startPlatform();
  await introduce(platform, "worker", [], worker.principal.id);
  await introduce(
    platform,
    "declared",
    [["llm:classify", { type: "object" }, { avgMs: 120 }]],
    declared.principal.id,
  );
});
afterAll(() => platform.stop());

interface ContractParts {
  required?: string[];
  task?: object;
  verification?: Json;
  deadlineMs?: number;
}

function contractOf({
  required = ["llm:classify"],
  task = {},
  verification,
  deadlineMs = 600_000,
}: ContractParts = {}) {
  const body: Json = {
    id: newId("ct"),
    version: "0.1",
    issuer: delegator.principal.id,
    createdAt: new Date(Date.now() - 1000).toISOString(),
    task: {
      title: "Count",
      description: "Count to three.",
      inputs: { to: 3 },
      outputSchema: { type: "object", required: ["count"] },
      ...task,
    },
    verification: verification ?? { method: "schema_match" },
    constraints: {
      maxBudgetMicrocents: 1000,
      deadline: new Date(Date.now() + deadlineMs).toISOString(),
      maxChainDepth: 2,
      requiredCapabilities: required,
    },
  };
  return signObject(engine, "contract", body, delegator) as Json;
}

const RIGHTS = [{ namespace: "llm", action: "classify", resource: "**" }];

async function grant(contractId: string, to: Keypair, lifetimeSeconds = 600) {
  const minted = await platform.clients.tokens.mintToken({
    requestId: crypto.randomUUID(),
    delegatee: to.principal.id,
    contractId,
    capabilities: RIGHTS,
    maxChainDepth: 2,
    maxBudgetMicrocents: 1000n,
    lifetime: durationFromMs(lifetimeSeconds * 1000),
  });
  return { ...minted, dct: minted.token?.token ?? "" };
}

/** Creates the parts of a delegation: a contract, a token for it, and their ids. */
async function delegation(to: Keypair = worker, parts: ContractParts = {}) {
  const contract = contractOf(parts);
  const { dct, delegationId } = await grant(contract.id, to);
  const ids = { delegationId, parentDelegationId: "del_000000000000" };
  return { contract, dct, dctFormat: "delegateos-sjt-v1", ...ids };
}

const NO_CONTRACT = {
  dct: "x",
  dctFormat: "delegateos-sjt-v1",
  delegationId: "del_123456789abc",
  parentDelegationId: "del_000000000000",
};

const post = (method: string, params?: unknown) => platform.post("/delegateos", call(method, params));
const delegate = (params: unknown) => result(post("delegateos/delegate", params));

/** Reads the platform's stored records, to check that nothing was added. */
async function stored() {
  const { tasks } = await platform.clients.tasks.listTasks({ pageSize: 1000 });
  const { contracts } = await platform.clients.contracts.listContracts({ pageSize: 1000 });
  const { lastSequence } = await platform.clients.revocations.listRevocations({});
  return { tasks: tasks.length, contracts: contracts.length, revocations: lastSequence };
}

describe("delegateos/delegate", () => {
  test("creates a task under the contract for the token's holder", async () => {
    const params = await delegation(worker, { deadlineMs: 7_200_000 });
    expect(await delegate(params)).toEqual({ accepted: true, delegationId: params.delegationId });
    const { contracts, tasks } = platform.clients;
    expect((await contracts.getContract({ contractId: params.contract.id })).contract?.signature).toBe(
      params.contract.signature,
    );
    const { task } = await tasks.getTask({ externalId: params.delegationId });
    expect(task).toMatchObject({
      agentId: "worker",
      capabilityId: "",
      description: "Count to three.",
      input: value({ to: 3 }),
      contractId: params.contract.id,
      delegationId: params.delegationId,
    });
    // The task may run until the contract's deadline, in two hours, instead of the default hour.
    expect(Number(task?.limits?.total?.seconds)).toBeGreaterThan(7100);
    expect(Number(task?.limits?.total?.seconds)).toBeLessThanOrEqual(7201);
  });

  test("with a repeated request returns the same delegation; with another contract the id is in use", async () => {
    const params = await delegation();
    const before = await stored();
    const answers = [await delegate(params), await delegate(params)];
    expect(answers[0]).toEqual(answers[1]);
    expect(await stored()).toEqual({ ...before, tasks: before.tasks + 1, contracts: before.contracts + 1 });
  });

  test("passes the token to the worker", async () => {
    const params = await delegation(declared);
    expect(await delegate(params)).toEqual({
      accepted: true,
      delegationId: params.delegationId,
      estimatedDurationMs: 120,
    });
    const leaving = new AbortController();
    const { signal } = leaving;
    for await (const { assignment } of platform.clients.workers.watchAssignments(
      { agentId: "declared" },
      { signal },
    )) {
      expect(assignment).toMatchObject({
        workerToken: params.dct,
        task: { externalId: params.delegationId },
      });
      break;
    }
    leaving.abort();
  });

  test("with an attenuated token uses its last block and the one above", async () => {
    const contract = contractOf();
    const { token, delegationId: parentDelegationId } = await grant(contract.id, delegator);
    const { attenuation, digest } = await platform.clients.tokens.prepareAttenuation({
      token,
      attenuation: { delegatee: worker.principal.id },
    } as never);
    const narrowed = await platform.clients.tokens.attenuateToken({
      token,
      attenuation,
      signature: engine.sign(digest, delegator.privateKey),
    } as never);
    const params = {
      contract,
      dct: narrowed.token?.token,
      dctFormat: "delegateos-sjt-v1",
      delegationId: narrowed.delegationId,
      parentDelegationId,
    };
    const wrong = { ...params, parentDelegationId: "del_000000000000" };
    expect(await error(post("delegateos/delegate", wrong))).toMatchObject({
      code: -32602,
      data: { violations: [{ path: "/parentDelegationId" }] },
    });
    expect((await delegate(params)).accepted).toBe(true);
  });

  const forged = "A".repeat(86);
  test.each<[string, () => Promise<Json>, string, string | undefined]>([
    [
      "a malformed token",
      async () => ({ ...(await delegation()), dct: "e30" }),
      "malformed_token",
      undefined,
    ],
    [
      "a token for another contract",
      async () => ({ ...(await delegation()), contract: contractOf() }),
      "contract_mismatch",
      undefined,
    ],
    [
      "a token that does not cover the contract",
      () => delegation(worker, { required: ["llm:classify", "web:search"] }),
      "contract_mismatch",
      undefined,
    ],
    [
      "an agent without the required capability",
      async () => {
        const params = await delegation(declared, { required: ["llm:generate"] });
        const { token, delegationId } = await platform.clients.tokens.mintToken({
          requestId: crypto.randomUUID(),
          delegatee: declared.principal.id,
          contractId: params.contract.id,
          capabilities: [{ namespace: "llm", action: "generate", resource: "**" }],
          maxBudgetMicrocents: 1000n,
        });
        return { ...params, dct: token?.token, delegationId };
      },
      "capability_mismatch",
      "Agent does not support llm:generate",
    ],
    ["a key without an agent", () => delegation(stranger), "agent_not_found", undefined],
    [
      "a contract that its issuer did not sign",
      async () => {
        const params = await delegation();
        return { ...params, contract: { ...params.contract, signature: forged } };
      },
      "signature_invalid",
      undefined,
    ],
    [
      "a contract with a check that does not exist",
      () => delegation(worker, { verification: { method: "deterministic_check", checkName: "magic" } }),
      "unknown_check",
      undefined,
    ],
    [
      "a contract with a schema that does not compile",
      () => delegation(worker, { task: { outputSchema: { type: "surprise" } } }),
      "schema_invalid",
      undefined,
    ],
    [
      "a contract whose deadline has passed",
      () => delegation(worker, { deadlineMs: -500 }),
      "deadline_exceeded",
      undefined,
    ],
  ])("declines %s, and stores nothing", async (_, make, reason, details) => {
    const params = await make();
    const before = await stored();
    const answer = await delegate(params);
    expect(answer).toEqual({ accepted: false, reason, details: details ?? expect.stringMatching(/./) });
    expect(await stored()).toEqual(before);
  });

  test("declines a revoked token", async () => {
    const contract = contractOf();
    const { dct, delegationId, revocationId } = await grant(contract.id, worker);
    await platform.clients.revocations.revokeMintedToken({ revocationId, scope: 2 });
    const params = {
      contract,
      dct,
      dctFormat: "delegateos-sjt-v1",
      delegationId,
      parentDelegationId: "del_000000000000",
    };
    expect(await delegate(params)).toMatchObject({ accepted: false, reason: "revoked" });
  });

  test("is checked with the caller's own token", async () => {
    const params = await delegation();
    const { dct: token } = await grant(params.contract.id, delegator);
    const before = await stored();
    const headers = holderHeaders(
      { engine, keypair: delegator, publicUrl: platform.url, token },
      "/delegateos",
    );
    expect(await error(platform.post("/delegateos", call("delegateos/delegate", params), headers))).toEqual({
      code: -32001,
      message: "DCT verification failed",
      data: {
        type: "capability_not_granted",
        requested: { namespace: "depute:tasks", action: "delegate", resource: "worker/-" },
        granted: RIGHTS,
      },
    });
    expect((await stored()).tasks).toBe(before.tasks);
  });
});

describe("delegateos/revoke", () => {
  test("revokes a block with a provable right, at its position in the list", async () => {
    const { dct, revocationId } = await grant(contractOf().id, delegator);
    const revocation = createRevocation(engine, revocationId, "chain", delegator);
    const { revocations } = platform.clients;
    const { lastSequence } = await revocations.listRevocations({});
    const sequence = Number(lastSequence) + 1;
    const takenRevocation = { revocationId, state: "revoked", sequence, revocation };
    expect(await result(post("delegateos/revoke", { revocation, dct }))).toEqual(takenRevocation);
    expect(await result(post("delegateos/revoke", { revocation }))).toEqual(takenRevocation);
    const { result: looked } = await platform.clients.tokens.inspectToken({
      token: create(SerializedDCTSchema, { token: dct, format: "delegateos-sjt-v1" }),
    });
    expect(looked.case).toBe("denial");
    expect(
      await json(fetch(`${platform.url}/delegateos/revocations?since=${sequence - 1}&page_size=5`)),
    ).toEqual({
      entries: [revocation],
      nextSequence: sequence,
      sequences: [sequence],
    });
  });

  test("stores an entry as waiting if the right cannot be proven", async () => {
    const revocation = createRevocation(engine, "A".repeat(43), "block", stranger);
    expect(await result(post("delegateos/revoke", { revocation }))).toEqual({
      revocationId: "A".repeat(43),
      state: "pending",
    });
  });

  test("is refused to a stranger", async () => {
    const { dct, revocationId } = await grant(contractOf().id, delegator);
    const before = await stored();
    const revocation = createRevocation(engine, revocationId, "chain", stranger);
    expect(await error(post("delegateos/revoke", { revocation, dct }))).toMatchObject({
      code: -32051,
      data: { reason: "NOT_AUTHORIZED_TO_REVOKE" },
    });
    const forged = { ...revocation, revokedBy: delegator.principal.id };
    expect(await error(post("delegateos/revoke", { revocation: forged, dct }))).toMatchObject({
      code: -32602,
      data: { reason: "SIGNATURE_INVALID" },
    });
    expect(await stored()).toEqual(before);
  });

  test("a batch of notifications and calls is answered for its calls", async () => {
    const granted = await Promise.all([1, 2].map(() => grant(contractOf().id, delegator)));
    const params = granted.map(({ dct, revocationId }) => ({
      revocation: createRevocation(engine, revocationId, "chain", delegator),
      dct,
    }));
    const batch = [notification("delegateos/revoke", params[0]), call("delegateos/revoke", params[1], "b")];
    expect(await json(platform.post("/delegateos", batch))).toMatchObject([
      { id: "b", result: { state: "revoked" } },
    ]);
    const { lastSequence } = await platform.clients.revocations.listRevocations({});
    const list = await json(
      fetch(`${platform.url}/delegateos/revocations?since=${Number(lastSequence) - 2}`),
    );
    expect(list.entries).toEqual(params.map(({ revocation }) => revocation));
  });
});

describe("GET /delegateos/revocations", () => {
  test("is read page by page, without gaps", async () => {
    const all = await json(fetch(`${platform.url}/delegateos/revocations?page_size=1000`));
    const read: unknown[] = [];
    let since = 0;
    for (;;) {
      const page = await json(fetch(`${platform.url}/delegateos/revocations?since=${since}&page_size=2`));
      read.push(...page.entries);
      if (page.entries.length < 2) break;
      since = page.nextSequence;
    }
    expect(read).toEqual(all.entries);
    expect(all.sequences).toEqual(all.entries.map((_: unknown, index: number) => index + 1));
  });

  test("is empty beyond the newest entry, and continues from there", async () => {
    expect(await json(fetch(`${platform.url}/delegateos/revocations?since=999`))).toEqual({
      entries: [],
      nextSequence: 999,
    });
  });

  test.each([
    "since=-1",
    "since=x",
    "since=1.5",
    "page_size=1001",
    "since=1&since=2",
    "since=9007199254740992",
  ])("?%s is refused", async (query) => {
    const refused = await json(fetch(`${platform.url}/delegateos/revocations?${query}`), 400);
    expect(refused).toMatchObject({ id: null, error: { code: -32602, data: { reason: "INVALID_REQUEST" } } });
  });
});

describe("bad input", () => {
  test.each<[string, unknown, number, string | undefined]>([
    ["malformed JSON", "[", -32700, undefined],
    ["an unknown method", call("delegateos/nothing"), -32601, undefined],
    ["another wire's method", call("nekte.discover", { level: 0 }), -32601, undefined],
    ["no parameters", call("delegateos/delegate"), -32602, "/dct"],
    ["no contract", call("delegateos/delegate", { ...NO_CONTRACT }), -32602, "/contract"],
    ["a contract that is a string", call("delegateos/delegate", { contract: "x" }), -32602, "/contract"],
    [
      "no attestation",
      call("delegateos/complete", { delegationId: "del_123456789abc" }),
      -32602,
      "/attestation",
    ],
    ["no revocation", call("delegateos/revoke", {}), -32602, "/revocation"],
    [
      "a signature of another length",
      call("delegateos/revoke", {
        revocation: {
          revocationId: "A".repeat(43),
          revokedBy: "A".repeat(43),
          revokedAt: "2026-01-01T00:00:00Z",
          scope: "block",
          signature: "x",
        },
      }),
      -32602,
      "/revocation/signature",
    ],
    [
      "a scope that does not exist",
      call("delegateos/revoke", {
        revocation: {
          revocationId: "A".repeat(43),
          revokedBy: "A".repeat(43),
          revokedAt: "2026-01-01T00:00:00Z",
          scope: "all",
          signature: "A".repeat(86),
        },
      }),
      -32602,
      "/revocation/scope",
    ],
  ])("%s", async (_, body, code, path) => {
    const before = await stored();
    const refused = await error(platform.post("/delegateos", body));
    expect(refused.code).toBe(code);
    if (path !== undefined) expect(refused.data.violations[0].path).toBe(path);
    expect(await stored()).toEqual(before);
  });

  test("an attestation of a contract that is not stored", async () => {
    const body: Json = {
      id: newId("att"),
      version: "0.1",
      contractId: "ct_123456789abc",
      delegationId: "del_123456789abc",
      principal: worker.principal.id,
      createdAt: new Date().toISOString(),
      type: "completion",
      result: { success: true, output: 1, costMicrocents: 0, durationMs: 0 },
      childAttestations: [],
    };
    const attestation = signObject(engine, "attestation", body, worker);
    const params = { delegationId: "del_123456789abc", attestation };
    expect(await error(post("delegateos/complete", params))).toMatchObject({
      code: -32053,
      data: { reason: "CONTRACT_NOT_FOUND" },
    });
  });

  test("another content type, and a body that is too long", async () => {
    const plain = await platform.post("/delegateos", call("delegateos/revoke", {}), {
      "content-type": "text/plain",
    });
    expect(plain.status).toBe(415);
    const long = call("delegateos/delegate", { contract: { x: "x".repeat(4_194_304) } });
    expect((await platform.post("/delegateos", long)).status).toBe(413);
    expect((await fetch(`${platform.url}/delegateos`)).status).toBe(405);
  });
});
