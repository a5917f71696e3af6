import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConnectError } from "@connectrpc/connect";
import { connect as connectHolder, holderHeaders } from "@depute/client";
import { tampered } from "@depute/core/testing";
import { generateKeypair, type Keypair, verifyAuthorityBundle } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, describe, expect, it, test, vi } from "vitest";
import { BUYER, introduceAll, marketAt, offerOf, requestOf, SELLER } from "../agenta/market.ts";
import { userOf } from "../cli/depute.ts";
import { connect, type Grant, holderFetch, type Right, textOf } from "../mcp/holder.ts";
import { type McpPlatform, startPlatform } from "../mcp/platform.ts";
import { connectProxy } from "../mcp/proxy-process.ts";

const keys = () => generateKeypair(engine);
const [buyer, middle, seller, auditor, stranger] = [keys(), keys(), keys(), keys(), keys()];
const REQUESTS = "/agenta/execution_requests";
const REPORTER = {
  command: process.execPath,
  args: [new URL("../mcp/changing-server.ts", import.meta.url).pathname, "modern", "/nonexistent"],
};
const MAP = { tools: { report: { namespace: "docs", action: "read", resource: "reports/daily" } } };
const READ: Right = ["docs", "read", "reports/**"];

let platform: McpPlatform;
const folder = mkdtempSync(join(tmpdir(), "depute-uses-"));
beforeAll(async () => {
  platform = await startPlatform({ reports: { stdio: REPORTER, map: MAP, revision: "modern" } }, [
    "--auditors",
    auditor.principal.id,
  ]);
  await introduceAll(platform, { [BUYER]: buyer.principal.id, [SELLER]: seller.principal.id });
}, 180_000);
afterAll(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Makes a token of two blocks: from the platform to the middle, and from there, with a smaller budget, to a holder. */
async function tokenOf(to: Keypair, [namespace, action, resource]: Right): Promise<Grant> {
  const { tokens } = platform.clients;
  const minted = await tokens.mintToken({
    ...{ requestId: crypto.randomUUID(), delegatee: middle.principal.id, contractId: "ct_a1b2c3d4e5f6" },
    ...{ capabilities: [{ namespace, action, resource }], maxBudgetMicrocents: 1000n, maxChainDepth: 2 },
  });
  const token = minted.token as NonNullable<typeof minted.token>;
  const { attenuation, digest } = await tokens.prepareAttenuation({
    token,
    attenuation: { delegatee: to.principal.id, maxBudgetMicrocents: 10n },
  });
  const signature = engine.sign(digest, middle.privateKey);
  const leaf = await tokens.attenuateToken({
    ...{ token, attenuation: attenuation as NonNullable<typeof attenuation>, signature },
  });
  const { delegationId, revocationId } = leaf;
  return {
    ...{ token: leaf.token?.token ?? "", keypair: to, delegationId, revocationId },
    contractId: "ct_a1b2c3d4e5f6",
  };
}

/** Requests an execution, and returns its first receipt. */
async function bought(token?: string) {
  const offer = await marketAt(platform.url).publish(offerOf());
  const credentials = {
    engine,
    keypair: buyer,
    publicUrl: platform.url,
    ...(token !== undefined && { token }),
  };
  const market = marketAt(platform.url, holderHeaders(credentials, REQUESTS, "POST"));
  return market.request(requestOf(offer));
}

/** Calls the tool over HTTP, and returns the id of the request. */
async function called(holder: Grant): Promise<string> {
  let requestId = "";
  const via = holderFetch(holder);
  const client = await connect(platform.mcp("reports"), "2026-07-28", async (input, init) => {
    const response = await via(input, init);
    if (String(init?.body).includes("tools/call"))
      requestId = response.headers.get("depute-request-id") ?? "";
    return response;
  });
  expect(textOf(await client.callTool({ name: "report", arguments: {} }))).toContain("Reads a report");
  await client.close();
  return requestId;
}

type Subject = { case: "receiptId"; value: string } | { case: "toolCall"; value: { requestId: string } };
const ofReceipt = (value: string): Subject => ({ case: "receiptId", value });
const ofCall = (requestId: string): Subject => ({ case: "toolCall", value: { requestId } });

async function explainAs(key: Keypair | undefined, subject: Subject) {
  if (key === undefined) return platform.clients.delegations.explainAuthority({ subject });
  const depute = connectHolder(platform.url, { key });
  try {
    return await depute.services.delegations.explainAuthority({ subject });
  } finally {
    depute.close();
  }
}

/** Waits until the audit log has both decisions on a call. */
const bothDecisions = (requestId: string, key?: Keypair) =>
  vi.waitFor(
    async () => {
      const explained = await explainAs(key, ofCall(requestId));
      expect(explained.explanation?.toolCall?.decisions).toHaveLength(2);
      return explained;
    },
    { timeout: 15_000, interval: 100 },
  );

const root = async () => (await platform.clients.tokens.getIssuer({})).principal;
const hasPython = spawnSync("python3", ["-c", "import cryptography"]).status === 0;
if (!hasPython && process.env.CI === "true") throw new Error("python3 with `cryptography` is needed");

/** Returns the verdicts of a Python program that follows only docs/explanations.md, one for each bundle. */
function byPython(bundles: readonly string[], key: string): string[] {
  const file = join(folder, `${crypto.randomUUID()}.jsonl`);
  writeFileSync(file, bundles.join("\n"));
  const { stdout, stderr } = spawnSync("python3", ["-B", "vectors/check/authority_bundle.py", file, key], {
    encoding: "utf8",
  });
  const lines = stdout.trimEnd().split("\n");
  if (lines.length !== bundles.length) throw new Error(stderr);
  return lines;
}

/** Expects that a bundle verifies offline, and that no copy with one change does. */
async function expectTamperProof(bundle: string): Promise<void> {
  const key = await root();
  const trusted = { roots: new Set([key]), logs: new Set<string>() };
  expect(verifyAuthorityBundle(engine, bundle, trusted)).toMatchObject({ ok: true });
  const changes = tampered(bundle);
  const accepted = changes.filter(({ text }) => verifyAuthorityBundle(engine, text, trusted).ok);
  expect(accepted.map(({ path }) => path)).toEqual([]);
  if (!hasPython) return;
  const [whole, ...verdicts] = byPython([bundle, ...changes.map(({ text }) => text)], key);
  expect(whole).toBe("valid");
  expect(changes.filter((_, i) => verdicts[i] === "valid").map(({ path }) => path)).toEqual([]);
}

describe("a receipt", () => {
  it("names the buyer's chain, which was valid when the execution was requested", async () => {
    const holder = await tokenOf(buyer, ["depute:tasks", "delegate", `${SELLER}/**`]);
    const receipt = await bought(holder.token);
    const { explanation, bundle } = await explainAs(buyer, ofReceipt(receipt.receipt_id));
    expect(explanation).toMatchObject({
      ...{ kind: "receipt", subjectId: receipt.receipt_id, principal: buyer.principal.id, validThen: true },
      blocks: [
        { delegatee: middle.principal.id, narrowed: [] },
        { delegatee: buyer.principal.id, revocationId: holder.revocationId, narrowed: ["budget"] },
      ],
      receipt: { requestId: receipt.request_id, sequence: 1n, buyer: buyer.principal.id },
    });
    expect(JSON.parse(bundle).receipt).toEqual(receipt);
    await expectTamperProof(bundle);
    await platform.clients.revocations.revokeMintedToken({
      ...{ revocationId: explanation?.blocks[0]?.revocationId ?? "", scope: 2 },
    });
    const later = await explainAs(buyer, ofReceipt(receipt.receipt_id));
    expect(later.explanation).toMatchObject({ validThen: true, validNow: false });
  }, 120_000);

  it("of a buyer without a token names the buyer alone", async () => {
    const receipt = await bought();
    const { explanation } = await explainAs(buyer, ofReceipt(receipt.receipt_id));
    expect(explanation).toMatchObject({ principal: buyer.principal.id, blocks: [], validThen: true });
  });

  it.each([
    ["the buyer", buyer, true],
    ["a principal above the buyer", middle, true],
    ["an auditor", auditor, true],
    ["the seller", seller, false],
    ["a stranger", stranger, false],
  ])("%s sees its authority: %#", async (_, caller, sees) => {
    const holder = await tokenOf(buyer, ["depute:tasks", "delegate", `${SELLER}/**`]);
    const { receipt_id: id } = await bought(holder.token);
    if (sees) {
      const { explanation } = await explainAs(caller, ofReceipt(id));
      return expect(explanation).toMatchObject({ subjectId: id });
    }
    expect(await refusalOf(caller, ofReceipt(id), id)).toEqual(
      await refusalOf(caller, ofReceipt("receipt-unknown"), "receipt-unknown"),
    );
  });
});

/** Returns a refusal without the id of the subject. */
async function refusalOf(caller: Keypair, subject: Subject, id: string): Promise<string> {
  const error = await explainAs(caller, subject).then(
    () => new Error("not refused"),
    (thrown: Error) => thrown,
  );
  const { code, details = [] } = error as Partial<ConnectError>;
  const facts = details.map((detail) => ("debug" in detail ? detail.debug : detail));
  return JSON.stringify([error.message, code, facts]).replaceAll(id, "ID");
}

describe("a call of an MCP tool", () => {
  it("names the token's chain and both decisions, and its records share the request's id", async () => {
    const holder = await tokenOf(keys(), READ);
    const requestId = await called(holder);
    const { explanation, bundle } = await bothDecisions(requestId, holder.keypair);
    expect(explanation).toMatchObject({
      ...{ kind: "tool_call", principal: holder.keypair.principal.id, validThen: true, validNow: true },
      blocks: [
        { delegatee: middle.principal.id },
        { revocationId: holder.revocationId, narrowed: ["budget"] },
      ],
      toolCall: {
        ...{ resource: "mcp/reports/report", isAllowed: true },
        decisions: [{ source: "tokens" }, { source: "gateway", caller: holder.keypair.principal.id }],
      },
    });
    await expectTamperProof(bundle);
    const { records } = await platform.clients.audit.listAuditRecords({ filter: { requestId } });
    expect(records.find(({ kind }) => kind === "call_tool")).toMatchObject({
      address: "127.0.0.1",
      revocationIds: [expect.any(String), holder.revocationId],
    });
  }, 120_000);

  it.each([
    ["a principal above the holder", middle, true],
    ["an auditor", auditor, true],
    ["a stranger", stranger, false],
  ])("%s sees it: %#", async (_, caller, sees) => {
    const requestId = await called(await tokenOf(keys(), READ));
    await bothDecisions(requestId);
    if (sees) {
      const { explanation } = await explainAs(caller, ofCall(requestId));
      return expect(explanation).toMatchObject({ subjectId: requestId });
    }
    const unknown = crypto.randomUUID();
    expect(await refusalOf(caller, ofCall(requestId), requestId)).toBe(
      await refusalOf(caller, ofCall(unknown), unknown),
    );
  });

  test("through the proxy over stdio returns its id in the result", async () => {
    const holder = await tokenOf(keys(), READ);
    const start = { server: REPORTER, upstream: { map: MAP, revision: "modern" }, holder };
    const { client, connected } = await connectProxy({ platform, folder }, start);
    await connected();
    const { _meta: meta } = await client.callTool({ name: "report", arguments: {} });
    await client.close();
    const requestId = String(meta?.["depute.dev/requestId"]);
    const { explanation } = await vi.waitFor(() => explainAs(holder.keypair, ofCall(requestId)), {
      ...{ timeout: 15_000, interval: 100 },
    });
    expect(explanation).toMatchObject({
      blocks: [{}, { revocationId: holder.revocationId }],
      toolCall: { resource: "mcp/server/report", isAllowed: true },
    });
  }, 90_000);
});

test("the command line explains both, and verifies their bundles", async () => {
  const holder = await tokenOf(buyer, ["depute:tasks", "delegate", `${SELLER}/**`]);
  const { receipt_id: receiptId } = await bought(holder.token);
  const requestId = await called(await tokenOf(keys(), READ));
  await bothDecisions(requestId);
  const user = userOf(platform.url);
  for (const [flag, id, words] of [
    ["--receipt", receiptId, "number 1 of the request"],
    ["--call", requestId, "mcp/reports/report: allowed"],
  ] as const) {
    const file = join(folder, "bundle.json");
    const explained = await user.run(["explain", flag, id, "--bundle", file]);
    expect(explained, explained.err).toMatchObject({ code: 0 });
    expect(explained.out).toContain(words);
    expect(explained.out).toContain("attenuates budget");
    const verified = await user.run(["verify-authority", file, `--root=${await root()}`]);
    expect(verified, verified.out).toMatchObject({ code: 0 });
    expect(verified.out).toContain(id);
  }
  expect(await user.run(["explain"])).toMatchObject({ code: 2 });
  expect(await user.run(["explain", "--receipt", receiptId, "--call", requestId])).toMatchObject({ code: 2 });
  user.remove();
}, 120_000);
