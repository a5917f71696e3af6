import { createPublicKey, verify } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import { holderHeaders } from "@depute/client";
import { AttestationSchema } from "@depute/contracts/delegateos/v0/attestation_pb";
import { TaskContractSchema } from "@depute/contracts/delegateos/v0/contract_pb";
import { formatTime } from "@depute/core";
import { generateKeypair, newId, signObject } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { decode } from "@depute/wire";
import { blake2b } from "blakejs";
import canonicalize from "canonicalize";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, introduce, type Json, startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { PublishedGrpc } from "./foreign-grpc.ts";
import { eventsIn, send } from "./plain-http.ts";

let platform: TestPlatform;
let grpc: PublishedGrpc;
let taskCount = 0;

const signer = generateKeypair(engine);
const TEXT = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };

beforeAll(async () => {
  platform = await startPlatform();
  grpc = new PublishedGrpc(platform.url);
  await introduce(platform, "worker", [["sentiment", TEXT], ["other"]]);
  await introduce(platform, "signer", [], signer.principal.id);
  platform.work("worker", async (input, { task }) => ({ output: { by: task.capabilityId, input } }));
  platform.work("signer", async (_, { task }) => {
    const output = { done: true };
    if (task.contractId === "") return { output };
    return { output, attestationId: await attest(task.contractId, output) };
  });
});
afterAll(async () => {
  grpc.close();
  await platform.stop();
});

/** Makes a contract that accepts any result; returns its id. */
async function agree(): Promise<string> {
  const issuer = generateKeypair(engine);
  const now = Date.now();
  const body = {
    id: newId("ct"),
    version: "0.1",
    issuer: issuer.principal.id,
    createdAt: formatTime(now),
    task: { title: "Work", description: "", inputs: {}, outputSchema: {} },
    verification: { method: "schema_match" },
    constraints: {
      maxBudgetMicrocents: 1,
      deadline: formatTime(now + 60_000),
      maxChainDepth: 1,
      requiredCapabilities: [],
    },
  };
  const contract = decode(TaskContractSchema, signObject(engine, "contract", body as never, issuer));
  if (!contract.ok) throw new Error(contract.error.message);
  await platform.clients.contracts.createContract({ contract: contract.message });
  return body.id;
}

async function attest(contractId: string, output: object): Promise<string> {
  const body = {
    id: newId("att"),
    version: "0.1",
    contractId,
    delegationId: newId("del"),
    principal: signer.principal.id,
    createdAt: formatTime(Date.now()),
    type: "completion",
    result: { success: true, output, costMicrocents: 1, durationMs: 1 },
    childAttestations: [],
  };
  const signed = signObject(engine, "attestation", body as never, signer);
  const attestation = decode(AttestationSchema, signed as unknown as JsonObject);
  if (!attestation.ok) throw new Error(attestation.error.message);
  await platform.clients.attestations.recordAttestation({ attestation: attestation.message });
  return body.id;
}

async function ask(
  method: string,
  params: object,
  path = "/nekte/worker",
  headers: Record<string, string> = {},
) {
  const { text } = await send(`${platform.url}${path}`, call(method, params), headers);
  return method === "nekte.delegate" ? eventsIn(text).at(-1) : JSON.parse(text);
}

const permissions = { forward: false, persist: true, derive: true };
const work = (context?: object, more: object = {}) => ({
  task: { id: `cap-${++taskCount}`, desc: "x", timeout_ms: 20_000, ...more },
  ...(context === undefined
    ? {}
    : { context: { data: { text: "so so" }, permissions, ttl_s: 60, ...context } }),
});

describe("a delegation that names its capability", () => {
  test.each(["/nekte/worker", "/nekte"])("runs that capability on the context's data (%s)", async (path) => {
    const end = await ask("nekte.delegate", work({}, { cap: "sentiment" }), path);
    expect(end?.data.out.compact).toEqual({ by: "sentiment", input: { text: "so so" } });
  });

  test("has a context whose scope contains the capability, inline or by id", async () => {
    const scoped = { id: "scoped", scope: ["sentiment"] };
    const brought = await ask("nekte.delegate", work(scoped, { cap: "sentiment" }));
    expect(brought?.data.out.compact.by).toBe("sentiment");
    const namedContext = { ...scoped, data: null, compression: "reference" };
    const again = await ask("nekte.delegate", work(namedContext, { cap: "sentiment" }));
    expect(again?.data.out.compact).toEqual({ by: "sentiment", input: { text: "so so" } });
    for (const other of [
      work(namedContext, { cap: "other" }),
      work(namedContext),
      work({ scope: [] }, { cap: "other" }),
    ]) {
      expect((await ask("nekte.delegate", other))?.data.code).toBe(-32005);
    }
  });

  test("is checked by the input's schema and the version, and refused for an unknown capability", async () => {
    const wrong = await ask("nekte.delegate", work({ data: { text: 1 } }, { cap: "sentiment" }));
    expect(wrong?.data).toMatchObject({ code: -32602 });
    const outdated = await ask("nekte.delegate", work({}, { cap: "sentiment", h: "00000000" }));
    expect(outdated?.data.code).toBe(-32001);
    expect((await ask("nekte.delegate", work({}, { cap: "nothing" })))?.data.code).toBe(-32002);
  });
});

describe("a derived context", () => {
  const share = (envelope: object, headers = {}) =>
    ask(
      "nekte.context",
      { envelope: { data: 1, permissions, ttl_s: 60, ...envelope } },
      "/nekte/worker",
      headers,
    );

  test("names its sources by both kinds of ids, and is revoked with them", async () => {
    await share({ id: "source" });
    expect((await share({ id: "made", ttl_s: 30, derived_from: ["source"] })).result.status).toBe("stored");
    const end = await ask("nekte.delegate", work({ id: "brought", ttl_s: 20, derived_from: ["made"] }));
    expect(end?.data.status).toBe("completed");
    const request = (id: string) => ask("nekte.context", { action: "request", envelope: { id } });
    expect((await request("made")).result).toEqual({ id: "made", data: 1, permissions, ttl_s: 30 });
    await ask("nekte.context", { action: "revoke", envelope: { id: "source" } });
    for (const id of ["made", "brought"]) expect((await request(id)).error.code).toBe(-32004);
  });

  test("is refused if a source does not allow it, or is unknown", async () => {
    await share({ id: "closed", permissions: { ...permissions, derive: false } });
    expect((await share({ id: "a", ttl_s: 30, derived_from: ["closed"] })).error.code).toBe(-32005);
    const brought = work({ id: "b", ttl_s: 30, derived_from: ["closed"] });
    expect((await ask("nekte.delegate", brought))?.data.code).toBe(-32005);
    expect((await share({ id: "c", derived_from: ["never"] })).error.data.reason).toBe("CONTEXT_NOT_FOUND");
    await share({ id: "short", ttl_s: 10 });
    expect((await share({ id: "d", derived_from: ["short"] })).error).toMatchObject({
      code: -32602,
      data: { violations: [{ path: "/envelope/ttl_s" }] },
    });
  });

  test("is refused to other callers", async () => {
    await share({ id: "mine" });
    const eve = { engine, keypair: generateKeypair(engine), publicUrl: platform.url };
    const refused = await share(
      { id: "theirs", ttl_s: 30, derived_from: ["mine"] },
      holderHeaders(eve, "/nekte/worker"),
    );
    expect(refused.error.data.reason).toBe("CONTEXT_NOT_FOUND");
  });
});

describe("nekte.verify with an attestation", () => {
  /**
   * A signature by DelegateOS 7.1: Ed25519 over the BLAKE2b-256 hash of the canonical document without its signature.
   */
  const isSigned = ({ signature, ...body }: Json) => {
    const digest = blake2b(Buffer.from(canonicalize(body) ?? ""), undefined, 32);
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: body.principal }, format: "jwk" });
    return verify(null, digest, key, Buffer.from(signature, "base64url"));
  };

  test("returns the worker's signature, over HTTP and gRPC", async () => {
    const params = work(undefined, { contract_id: await agree() });
    const { id: task_id } = params.task;
    expect((await ask("nekte.delegate", params, "/nekte/signer"))?.data.status).toBe("completed");
    const { result } = await ask(
      "nekte.verify",
      { task_id, checks: ["hash", "attestation"] },
      "/nekte/signer",
    );
    expect(result.attestation).toMatchObject({
      principal: signer.principal.id,
      result: { output: { done: true } },
    });
    expect(isSigned(result.attestation)).toBe(true);
    expect(isSigned({ ...result.attestation, createdAt: "2026-01-01T00:00:00.000Z" })).toBe(false);
    const verified = await grpc.call(
      "Verify",
      { task_id, checks: ["attestation"] },
      { "nekte-agent": "signer" },
    );
    expect(JSON.parse(verified.data).attestation).toEqual(result.attestation);
  });

  test("reports a missing attestation", async () => {
    const params = work();
    await ask("nekte.delegate", params, "/nekte/signer");
    const question = { task_id: params.task.id, checks: ["attestation"] };
    const { error } = await ask("nekte.verify", question, "/nekte/signer");
    expect(error.data).toMatchObject({ reason: "ATTESTATION_NOT_FOUND" });
    expect(error.data.detail).toContain("sent no attestation");
  });
});
