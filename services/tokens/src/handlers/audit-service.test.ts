import { createHash } from "node:crypto";
import { toJson } from "@bufbuild/protobuf";
import {
  AuditCredential,
  AuditDecision,
  type AuditRecord,
  AuditRecordSchema,
  type ListAuditRecordsResponse,
} from "@depute/contracts/depute/tokens/v1/audit_service_pb";
import { canonicalJson, formatTime, toTimestamp } from "@depute/core";
import type { Keypair } from "@depute/dct";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { appendDecisions } from "../store/audit-rows.ts";
import { alice, attenuate, bob, engine, id, mallory, mint, withProof } from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

let platform: Platform;
beforeEach(async () => {
  platform = await startPlatform(["--auditors", id(bob)]);
});
afterEach(() => platform.stop());

const list = (request: object = {}) => platform.auditRecords.listAuditRecords(request);
const kinds = ({ records }: ListAuditRecordsResponse) => records.map(({ kind }: AuditRecord) => kind);

async function chain() {
  const first = await mint(platform);
  const second = await attenuate(platform, first.token, alice, bob);
  return { first, second };
}

describe("AuditService", () => {
  it("lists decisions in order, with caller, outcome and blocks, also after a restart", async () => {
    const { first, second } = await chain();
    const { records, nextPageToken } = await list();
    expect(records.map(({ kind }) => kind)).toEqual(["mint", "attenuate"]);
    expect(records.map(({ sequence }) => sequence)).toEqual([1n, 2n]);
    expect(records[0]).toMatchObject({ caller: "local", decision: AuditDecision.ALLOWED });
    expect(records[1]?.revocationIds).toEqual([first.revocationId, second.revocationId]);
    expect(nextPageToken).toBe("");
    await platform.restart();
    expect((await list()).records).toEqual(records);
  });

  it("selects records by each filter, and by all of them together", async () => {
    const { second } = await chain();
    const select = async (filter: object) => kinds(await list({ filter }));
    expect(await select({ kind: "mint" })).toEqual(["mint"]);
    expect(await select({ revocationId: second.revocationId })).toEqual(["attenuate"]);
    expect(await select({ kind: "mint", revocationId: second.revocationId })).toEqual([]);
    expect(await select({ caller: "local", kind: "mint" })).toEqual(["mint"]);
    expect(await select({ caller: "stranger" })).toEqual([]);
    expect(await select({ principal: "stranger" })).toEqual([]);
    expect(await select({ decision: AuditDecision.DENIED })).toEqual([]);
  });

  it("continues after a page, for the same filters alone", async () => {
    await chain();
    const first = await list({ pageSize: 1 });
    expect(kinds(first)).toEqual(["mint"]);
    const { nextPageToken: pageToken } = first;
    expect(kinds(await list({ pageSize: 1, pageToken }))).toEqual(["attenuate"]);
    const refused = await refusal(list({ pageSize: 1, pageToken, filter: { kind: "mint" } }));
    expect(refused.reason).toBe("PAGE_TOKEN_INVALID");
  });

  it("bounds what one call examines: a page can be empty although more follow", async () => {
    const own = { caller: "c", principal: "", decision: "allowed", reason: "", blocks: [] } as const;
    const at = { sha256: engine.sha256, now: 0 };
    const row = { ...own, time: 0, source: "tokens", call: {} };
    await platform.whileDown(async () => {
      const store = await platform.openOwnStore();
      await store.write((tx) => appendDecisions(tx, Array(2000).fill({ ...row, kind: "inspect" }), at));
      await store.write((tx) => appendDecisions(tx, [{ ...row, kind: "mint" }], at));
      await store.close();
    });
    const first = await list({ filter: { kind: "mint" } });
    expect(first.records).toEqual([]);
    const second = await list({ filter: { kind: "mint" }, pageToken: first.nextPageToken });
    expect(second.records.map(({ sequence }) => sequence)).toEqual([2001n]);
    expect(second.nextPageToken).toBe("");
  });

  it("answers a principal of the setting auditors, and no other caller", async () => {
    await chain();
    const as = (caller: Keypair) =>
      platform.auditRecords.listAuditRecords(
        {},
        withProof(platform, caller, "AuditService/ListAuditRecords"),
      );
    expect(kinds(await as(bob))).toEqual(["mint", "attenuate"]);
    for (const stranger of [alice, mallory]) {
      expect((await refusal(as(stranger))).reason).toBe("CALLER_NOT_ALLOWED");
    }
  });

  it("names the call of a decision: credentials, address, method, wire, request and trace", async () => {
    const headers = {
      "depute-request-id": "request-1",
      traceparent: "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01",
    };
    const { headers: proven } = withProof(platform, alice, "TokenService/MintToken");
    await refusal(mint(platform, {}, { headers: { ...headers, ...proven } }));
    await vi.waitFor(async () => expect((await list({ filter: { kind: "mint" } })).records).toHaveLength(1));
    const { records } = await list({ filter: { requestId: "request-1", kind: "mint" } });
    expect(records[0]).toMatchObject({
      ...{ source: "tokens", caller: id(alice), credential: AuditCredential.HOLDER_PROOF },
      ...{ address: "127.0.0.1", wire: "grpc", rpc: "depute.tokens.v1.TokenService/MintToken" },
      ...{ requestId: "request-1", traceId: "0123456789abcdef0123456789abcdef" },
      ...{ decision: AuditDecision.DENIED, reason: "caller_not_allowed" },
    });
  });

  it("ignores a client's claim about its address, wire or beneficiary", async () => {
    const headers = {
      ...{ "x-forwarded-for": "10.0.0.2", forwarded: "for=10.0.0.3" },
      "depute-client-address": "10.0.0.1",
      "depute-wire": "a2a",
      "depute-on-behalf-of": "bob",
    };
    const { headers: proven } = withProof(platform, alice, "TokenService/MintToken");
    await refusal(mint(platform, {}, { headers: { ...headers, ...proven } }));
    await vi.waitFor(async () => expect((await list()).records.length).toBeGreaterThan(0));
    for (const record of (await list()).records)
      expect(record).toMatchObject({ address: "127.0.0.1", wire: "grpc", onBehalfOf: "" });
  });

  it.each([
    ["X-Forwarded-For", [], "192.0.2.7"],
    ["Forwarded", ["--forwarded-header", "forwarded"], "192.0.2.8"],
  ])("names the client that a trusted proxy states in %s", async (_, flags, client) => {
    await platform.stop();
    platform = await startPlatform(["--auditors", id(bob)], ["--trusted-proxies", "127.0.0.0/8", ...flags]);
    const { headers: proven } = withProof(platform, alice, "TokenService/MintToken");
    const addresses = { "x-forwarded-for": "10.9.9.9, 192.0.2.7", forwarded: "for=192.0.2.8" };
    // The proof names the public URL, which only the setting states.
    const headers = { ...addresses, "x-forwarded-host": "evil.example", "x-forwarded-proto": "http" };
    await refusal(mint(platform, {}, { headers: { ...headers, ...proven } }));
    await mint(platform, {}, { headers });
    await vi.waitFor(async () => expect((await list()).records).toHaveLength(3));
    for (const { address } of (await list()).records) expect(address).toBe(client);
  });

  it("selects records by time", async () => {
    await chain();
    platform.clock.advance(60_000);
    const later = platform.clock.now();
    await mint(platform);
    const select = async (filter: object) => kinds(await list({ filter }));
    expect(await select({ startTime: toTimestamp(later) })).toEqual(["mint"]);
    expect(await select({ endTime: toTimestamp(later) })).toEqual(["mint", "attenuate"]);
  });

  it("continues a watch after a sequence, first with stored records, then with each new one", async () => {
    await chain();
    const left = new AbortController();
    const watch = platform.auditRecords.watchAuditRecords(
      { afterSequence: 1n, sendStart: true, filter: { decision: AuditDecision.ALLOWED } },
      { signal: left.signal },
    );
    const seen: (string | undefined)[] = [];
    for await (const { sequence, record } of watch) {
      seen.push(`${sequence} ${record?.kind}`);
      if (seen.length === 2) await mint(platform);
      if (seen.length === 3) break;
    }
    left.abort();
    expect(seen).toEqual(["1 undefined", "2 attenuate", "3 mint"]);
  });

  it("omits records from a watch that its filter excludes", async () => {
    const left = new AbortController();
    const watch = platform.auditRecords.watchAuditRecords(
      { sendStart: true, filter: { kind: "mint" } },
      { signal: left.signal },
    );
    const seen: (string | undefined)[] = [];
    for await (const { record } of watch) {
      seen.push(record?.kind);
      if (seen.length === 1) {
        await chain();
        await mint(platform);
      }
      if (seen.length === 3) break;
    }
    left.abort();
    expect(seen).toEqual([undefined, "mint", "mint"]);
  });

  it("records a delivered batch of another service once", async () => {
    const time = toTimestamp(platform.clock.now());
    const decision = {
      kind: "call",
      caller: "c",
      resource: "tasks/t-1",
      time,
      decision: AuditDecision.ALLOWED,
    };
    const request = { source: "tasks", batchId: crypto.randomUUID(), decisions: [decision] };
    await platform.auditRecords.recordAuditDecisions(request);
    await platform.auditRecords.recordAuditDecisions(request);
    await platform.auditRecords.recordAuditDecisions({ ...request, batchId: crypto.randomUUID() });
    const { records } = await list({ filter: { resource: "tasks/t-1" } });
    expect(records.map(({ source, sequence }) => `${source} ${sequence}`)).toEqual(["tasks 1", "tasks 2"]);
    const as = withProof(platform, bob, "AuditService/RecordAuditDecisions");
    const refused = await refusal(platform.auditRecords.recordAuditDecisions(request, as));
    expect(refused.reason).toBe("CALLER_NOT_ALLOWED");
  });

  async function exported(request: object = {}) {
    const lines: string[] = [];
    for await (const part of platform.auditRecords.exportAuditRecords(request)) lines.push(...part.lines);
    return lines;
  }

  it("exports records as canonical lines of their JSON", async () => {
    await chain();
    const lines = await exported();
    const { records } = await list();
    expect(lines).toEqual(records.map((record) => canonicalJson(toJson(AuditRecordSchema, record))));
    expect(await exported({ afterSequence: 1n })).toEqual(lines.slice(1));
    expect(await exported({ filter: { kind: "mint" } })).toEqual(lines.slice(0, 1));
  });

  it("seals a day at its end, and the seal covers exactly its records", async () => {
    await chain();
    expect((await platform.auditRecords.listAuditSeals({})).seals).toEqual([]);
    const day = formatTime(platform.clock.now()).slice(0, 10);
    platform.clock.advance(24 * 3_600_000);
    await mint(platform);
    const { seals } = await platform.auditRecords.listAuditSeals({});
    expect(seals).toMatchObject([{ day, firstSequence: 1n, lastSequence: 2n }]);
    const heads: Buffer[] = [Buffer.alloc(32)];
    for (const [n, line] of (await exported()).entries())
      heads.push(sha256(Buffer.concat([heads[n] ?? Buffer.alloc(0), sha256(Buffer.from(line))])));
    expect(Buffer.from(seals[0]?.previousHead ?? [])).toEqual(heads[0]);
    expect(Buffer.from(seals[0]?.head ?? [])).toEqual(heads[2]);
    await platform.restart();
    platform.clock.advance(24 * 3_600_000);
    await mint(platform);
    const [first, second] = (await platform.auditRecords.listAuditSeals({ pageSize: 1000 })).seals;
    expect(Buffer.from(first?.rootHash ?? [])).toEqual(rootOf(await exported()));
    expect(second).toMatchObject({ firstSequence: 3n, lastSequence: 3n });
    expect(Buffer.from(second?.head ?? [])).toEqual(heads[3]);
  });

  it("refuses a proof of a record of a day without a root, of an open day, and of no record", async () => {
    await chain();
    await platform.whileDown(async () => {
      const store = await platform.openOwnStore();
      await store.write((tx) => tx.run("UPDATE audit_state SET tree_size = 0"));
      await store.close();
    });
    const day = formatTime(platform.clock.now()).slice(0, 10);
    platform.clock.advance(24 * 3_600_000);
    await mint(platform);
    const prove = (sequence: number) =>
      refusal(platform.auditRecords.getAuditRecordProof({ sequence: BigInt(sequence) }));
    expect(await prove(2)).toMatchObject({ reason: "AUDIT_PROOF_UNAVAILABLE", metadata: { day } });
    expect(await prove(3)).toMatchObject({
      reason: "AUDIT_DAY_NOT_SEALED",
      metadata: { seal_time: expect.any(String) },
    });
    expect(await prove(4)).toMatchObject({ reason: "AUDIT_RECORD_NOT_FOUND", metadata: { sequence: "4" } });
    const as = withProof(platform, mallory, "AuditService/GetAuditRecordProof");
    const refused = await refusal(platform.auditRecords.getAuditRecordProof({ sequence: 2n }, as));
    expect(refused.reason).toBe("CALLER_NOT_ALLOWED");
  });
});

/** Computes SHA-256 with Node.js, because the service computes its seals with other code. */
function sha256(data: Uint8Array): Buffer {
  return createHash("sha256").update(data).digest();
}

/** Returns the root of the Merkle tree over the first two lines. */
function rootOf([first = "", second = ""]: readonly string[]): Buffer {
  const leaves = [first, second].map((line) => sha256(Buffer.concat([Buffer.of(0), Buffer.from(line)])));
  return sha256(Buffer.concat([Buffer.of(1), ...leaves]));
}
