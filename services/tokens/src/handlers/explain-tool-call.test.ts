import { tampered } from "@depute/core/testing";
import { verifyAuthorityBundle } from "@depute/dct";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  alice,
  attenuate,
  bob,
  carol,
  engine,
  id,
  mallory,
  mint,
  READ,
  requirePresent,
  revocation,
  verify,
  withProof,
} from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

let platform: Platform;
beforeEach(async () => {
  platform = await startPlatform();
});
afterEach(() => platform.stop());

const TOOL = "files/read_text_file";

/** Creates Bob's token of two blocks, and calls a tool under it. */
async function called(requestId = crypto.randomUUID(), more: object = {}) {
  const root = await mint(platform);
  platform.clock.advance(1000);
  const leaf = await attenuate(platform, root.token, alice, bob, {
    allowedCapabilities: { capabilities: [READ] },
    maxBudgetMicrocents: 100n,
  });
  await call(leaf, requestId, more);
  return { root, leaf, requestId };
}

/** Verifies Bob's token for a tool call, with the request that the MCP proxy sends. */
async function call(
  { token }: Pick<Awaited<ReturnType<typeof attenuate>>, "token">,
  requestId: string,
  more = {},
) {
  const { tokens } = platform;
  const headers = { "depute-request-id": requestId };
  const named: Platform = Object.create(platform, {
    tokens: {
      value: { ...tokens, verifyToken: (request: object) => tokens.verifyToken(request, { headers }) },
    },
  });
  return verify(named, token, bob, { toolCall: TOOL, ...more });
}

const ofCall = (requestId: string, sequence = 0n) => ({
  subject: { case: "toolCall" as const, value: { requestId, sequence } },
});
const asking = (caller: typeof bob) => withProof(platform, caller, "DelegationService/ExplainAuthority");
const explain = (request: object, options?: { headers: Record<string, string> }) =>
  platform.delegations.explainAuthority(request, options);
/** Waits until the audit log has the tool call, and returns the explanation. */
const explained = (requestId: string, caller?: typeof bob) =>
  vi.waitFor(() => explain(ofCall(requestId), caller && asking(caller)), { timeout: 5_000, interval: 50 });
const trusted = async () => {
  const { trustedRoots } = await platform.tokens.getIssuer({});
  return { roots: new Set(trustedRoots), logs: new Set<string>() };
};

it("names the authorizing parties of the call, the narrowing of each block, and the decision", async () => {
  const { root, leaf, requestId } = await called();
  const { explanation } = await explained(requestId);
  expect(explanation).toMatchObject({
    ...{ kind: "tool_call", subjectId: requestId, principal: id(bob), validThen: true, validNow: true },
    blocks: [
      { revocationId: root.revocationId, delegatee: id(alice), narrowed: [] },
      { revocationId: leaf.revocationId, delegatee: id(bob), narrowed: ["capabilities", "budget"] },
    ],
    toolCall: {
      ...{ resource: `mcp/${TOOL}`, isAllowed: true },
      decisions: [{ source: "tokens", isAllowed: true }],
    },
  });
});

it("states the validity at the time of the call, and the present one", async () => {
  const { root, requestId } = await called();
  await explained(requestId);
  platform.clock.advance(1000);
  await platform.revocations.revokeToken({
    entry: revocation(platform, root.revocationId, alice, "chain"),
    token: requirePresent(root.token),
  });
  const { explanation } = await explained(requestId);
  expect(explanation).toMatchObject({ validThen: true, validNow: false });
});

it("explains a denied call, and refuses a verification that is not a tool call", async () => {
  const { requestId } = await called(undefined, { requested: { ...READ, resource: "/secret" } });
  expect((await explained(requestId)).explanation?.toolCall).toMatchObject({
    isAllowed: false,
    decisions: [{ isAllowed: false, reason: "capability_not_granted" }],
  });
  const other = await called(undefined, { toolCall: "" });
  await called();
  expect(await refusal(explain(ofCall(other.requestId)))).toMatchObject({ reason: "TOOL_CALL_NOT_FOUND" });
});

it("needs the audit record when a client used a request id twice", async () => {
  const { leaf, requestId } = await called();
  await explained(requestId);
  await call(leaf, requestId);
  const ambiguous = await vi.waitFor(async () => {
    const found = await refusal(explain(ofCall(requestId)));
    expect(found).toMatchObject({ reason: "TOOL_CALL_AMBIGUOUS" });
    return found;
  });
  const [first = "", second] = String(ambiguous.metadata.candidates).split(",");
  expect(second).toBeDefined();
  const { explanation } = await explain(ofCall(requestId, BigInt(first)));
  expect(explanation?.toolCall?.decisions).toMatchObject([{ sequence: BigInt(first) }]);
  expect(await refusal(explain(ofCall(requestId, 1n << 39n)))).toMatchObject({
    reason: "TOOL_CALL_NOT_FOUND",
  });
});

describe("callers", () => {
  it.each([
    ["the holder", bob, true],
    ["a principal above the holder", alice, true],
    ["a principal outside the chain", carol, false],
    ["a stranger", mallory, false],
  ])("%s: sees the call: %s", async (_, caller, sees) => {
    const { requestId } = await called();
    await explained(requestId);
    const request = explain(ofCall(requestId), asking(caller));
    if (sees) return expect((await request).explanation).toMatchObject({ subjectId: requestId });
    const unknown = crypto.randomUUID();
    const [real, invented] = [
      await refusal(request),
      await refusal(explain(ofCall(unknown), asking(caller))),
    ];
    expect(JSON.stringify(real).replaceAll(requestId, "")).toBe(
      JSON.stringify(invented).replaceAll(unknown, ""),
    );
    expect(real).toMatchObject({ reason: "TOOL_CALL_NOT_FOUND" });
  });

  it("that may not read the audit log get no audit records", async () => {
    const { requestId } = await called();
    const auditOf = ({ bundle }: { bundle: string }) => JSON.parse(bundle).statement.audit;
    expect(auditOf(await explained(requestId))).toMatchObject([{ kind: "verify_token" }]);
    expect(auditOf(await explained(requestId, bob))).toBeUndefined();
  });
});

it("a bundle is valid offline, and invalid with a changed or missing line", async () => {
  const { requestId } = await called();
  const { bundle } = await explained(requestId);
  const keys = await trusted();
  expect(verifyAuthorityBundle(engine, bundle, keys)).toMatchObject({ ok: true });
  const changes = tampered(bundle);
  expect(changes.length).toBeGreaterThan(60);
  const accepted = changes.filter(({ text }) => verifyAuthorityBundle(engine, text, keys).ok);
  expect(accepted.map(({ path }) => path)).toEqual([]);
});
