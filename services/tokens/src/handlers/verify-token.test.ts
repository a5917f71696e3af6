import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type DenialReason, DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { encodeBase64Url } from "@depute/core";
import { argumentsDigest, createToken, parseToken, serialiseToken } from "@depute/dct";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { denialOf, isAllowed, typeOf } from "../testing/decisions.ts";
import { forgeLink } from "../testing/forge.ts";
import {
  alice,
  attenuate,
  bob,
  CALL,
  CONTRACT,
  engine,
  id,
  mallory,
  mint,
  otherRoot,
  prove,
  READ,
  readFile,
  requirePresent,
  revocation,
  verify,
} from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

describe("a denial", () => {
  let platform: Platform;
  beforeAll(async () => {
    platform = await startPlatform();
  });
  afterAll(() => platform.stop());

  /** Creates a root token for alice and changes it without a new signature. */
  const forged = async (change: (token: { authority: object }) => object) => {
    const { token } = await mint(platform);
    const parsed = JSON.parse(Buffer.from(requirePresent(token).token, "base64url").toString());
    const json = JSON.stringify(sorted(change(parsed)));
    return { token: encodeBase64Url(new TextEncoder().encode(json)), format: "delegateos-sjt-v1" };
  };
  const presentToken = async (token: { token: string; format: string }, more: object = {}) =>
    denialOf(
      platform.tokens.verifyToken({
        token,
        proof: { jwt: prove(platform, alice, { token: token.token }), method: "POST", target: CALL.htu },
        requested: readFile(),
        ...more,
      }),
    );
  const fresh = async (more: object = {}) => requirePresent((await mint(platform, more)).token);

  const cases: Record<string, [keyof typeof DenialType, () => Promise<DenialReason>]> = {
    "a missing token": [
      "MALFORMED_TOKEN",
      () => denialOf(platform.tokens.verifyToken({ requested: readFile() })),
    ],
    "a malformed token": [
      "MALFORMED_TOKEN",
      () => presentToken({ token: "!!", format: "delegateos-sjt-v1" }),
    ],
    "another format": ["MALFORMED_TOKEN", async () => presentToken({ ...(await fresh()), format: "jwt" })],
    "an unknown member": [
      "MALFORMED_TOKEN",
      async () => presentToken(await forged((t) => ({ ...t, more: 1 }))),
    ],
    "a token of 16,001 characters": [
      "TOKEN_TOO_LARGE",
      () => presentToken({ token: "A".repeat(16_001), format: "delegateos-sjt-v1" }),
    ],
    "a revoked block": [
      "REVOKED",
      async () => {
        const { token, revocationId } = await mint(platform);
        await platform.revocations.revokeMintedToken({ revocationId, scope: 1 });
        return presentToken(requirePresent(token));
      },
    ],
    "an untrusted root": [
      "INVALID_SIGNATURE",
      () => {
        const grant = { delegatee: id(alice), capabilities: [READ], contractId: CONTRACT };
        const limits = { maxBudgetMicrocents: 10, maxChainDepth: 1 };
        const now = platform.clock.now();
        return presentToken(serialiseToken(createToken(engine, { ...grant, ...limits }, otherRoot, { now })));
      },
    ],
    "a changed budget": [
      "INVALID_SIGNATURE",
      async () => {
        return presentToken(
          await forged((t) => ({
            ...t,
            authority: { ...t.authority, maxBudgetMicrocents: 1e9 },
          })),
        );
      },
    ],
    "a block that grants more": ["ATTENUATION_VIOLATION", () => widened({ maxBudgetMicrocents: 5000 })],
    "a link too many": ["CHAIN_DEPTH_EXCEEDED", async () => widened({}, await fresh({ maxChainDepth: 0 }))],
    "no proof": [
      "PROOF_REQUIRED",
      async () => denialOf(platform.tokens.verifyToken({ token: await fresh(), requested: readFile() })),
    ],
    "another principal's proof": [
      "INVALID_PROOF",
      async () => denialOf(verify(platform, await fresh(), mallory)),
    ],
    "a proof for another token": [
      "INVALID_PROOF",
      async () => {
        const jwt = prove(platform, alice, { token: (await fresh()).token });
        return denialOf(verify(platform, await fresh(), alice, { jwt }));
      },
    ],
    "a proof used before": [
      "REPLAYED_PROOF",
      async () => {
        const token = await fresh();
        const jwt = prove(platform, alice, { token: token.token });
        await verify(platform, token, alice, { jwt });
        return denialOf(verify(platform, token, alice, { jwt }));
      },
    ],
    "a token at its end": [
      "EXPIRED",
      async () => {
        const token = await fresh({ lifetime: durationFromMs(1_000) });
        platform.clock.advance(1001);
        return presentToken(token);
      },
    ],
    "a spent budget": [
      "BUDGET_EXCEEDED",
      async () => presentToken(await fresh(), { spentMicrocents: 1000n }),
    ],
    "another contract": [
      "CONTRACT_MISMATCH",
      async () => presentToken(await fresh(), { contractId: "ct_000000000001" }),
    ],
    "a contract that requires more": [
      "CONTRACT_MISMATCH",
      async () => presentToken(await fresh(), { requiredCapabilities: ["docs:read", "docs:write"] }),
    ],
    "a resource with dots": [
      "INVALID_RESOURCE",
      async () => presentToken(await fresh(), { requested: readFile("/project/../secret") }),
    ],
    "a resource outside": [
      "CAPABILITY_NOT_GRANTED",
      async () => presentToken(await fresh(), { requested: readFile("/elsewhere") }),
    ],
  };

  /**
   * Attenuates a token with a block that no rule has checked, and returns the denial. Alice signs the block outside the
   * service.
   */
  async function widened(limits: object, token?: { token: string }): Promise<DenialReason> {
    const { token: text } = token ?? (await fresh());
    return presentToken(forgeLink(text, alice, alice, limits));
  }

  it.each(Object.entries(cases))("of %s", async (_, [type, ask]) => {
    const denial = await ask();
    expect(DenialType[type]).toBe(denial.type);
    expect(denial.granted === undefined).toBe(type !== "CAPABILITY_NOT_GRANTED");
  });
});

describe("VerifyToken", () => {
  let platform: Platform;
  beforeEach(async () => {
    platform = await startPlatform();
  });
  afterEach(() => platform.stop());

  it("returns the grants only to a proven holder", async () => {
    const { token } = await mint(platform);
    const outside = readFile("/elsewhere");
    const denial = await denialOf(verify(platform, token, alice, { requested: outside }));
    expect(denial).toMatchObject({ requested: outside, granted: { capabilities: [READ, {}] } });
    const other = await denialOf(verify(platform, token, mallory, { requested: outside }));
    expect(other).toMatchObject({ type: DenialType.INVALID_PROOF });
    expect(other.granted).toBeUndefined();
  });

  it("uses up a genuine proof for any decision, and no other", async () => {
    const { token } = await mint(platform);
    const proveOnce = () => prove(platform, alice, { token: requirePresent(token).token });
    for (const more of [
      { requested: readFile("/elsewhere") },
      { requested: readFile("/..") },
      { spentMicrocents: 1000n },
      { contractId: "ct_000000000001" },
    ]) {
      const jwt = proveOnce();
      expect(await isAllowed(verify(platform, token, alice, { jwt, ...more }))).toBe(false);
      const again = await denialOf(
        verify(platform, token, alice, { jwt, requested: readFile("/elsewhere") }),
      );
      expect(again.type).toBe(DenialType.REPLAYED_PROOF);
      expect(again.granted).toBeUndefined();
    }
    const jwt = proveOnce();
    const elsewhere = { proof: { jwt, method: "POST", target: "https://elsewhere.example/" } };
    expect(await typeOf(verify(platform, token, alice, elsewhere))).toBe(DenialType.INVALID_PROOF);
    expect(await isAllowed(verify(platform, token, alice, { jwt }))).toBe(true);
  });

  it("accepts one of many concurrent equal proofs (B5)", async () => {
    const { token } = await mint(platform);
    const jwt = prove(platform, alice, { token: requirePresent(token).token });
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => verify(platform, token, alice, { jwt })),
    );
    const types = answers.map(({ result }) => (result.case === "denial" ? result.value.type : "allowed"));
    expect(types.filter((type) => type === "allowed")).toHaveLength(1);
    expect(types.filter((type) => type === DenialType.REPLAYED_PROOF)).toHaveLength(19);
  });

  it("accepts a proof in its window, and remembers it longer, across restarts (B5)", async () => {
    const { token } = await mint(platform);
    const ahead = prove(platform, alice, {
      token: requirePresent(token).token,
      now: platform.clock.now() + 30_000,
    });
    expect(await isAllowed(verify(platform, token, alice, { jwt: ahead }))).toBe(true);
    await platform.restart();
    expect(await typeOf(verify(platform, token, alice, { jwt: ahead }))).toBe(DenialType.REPLAYED_PROOF);
    platform.clock.advance(90_000);
    expect(await typeOf(verify(platform, token, alice, { jwt: ahead }))).toBe(DenialType.REPLAYED_PROOF);
    platform.clock.advance(1);
    expect(await typeOf(verify(platform, token, alice, { jwt: ahead }))).toBe(DenialType.INVALID_PROOF);
    const tooFarAhead = prove(platform, alice, {
      token: requirePresent(token).token,
      now: platform.clock.now() + 32_000,
    });
    expect(await typeOf(verify(platform, token, alice, { jwt: tooFarAhead }))).toBe(DenialType.INVALID_PROOF);
  });

  it("denies while the memory of proofs is full, until the first expires (B5)", async () => {
    const small = await startPlatform(["--max-seen-proofs", "2"]);
    try {
      const { token } = await mint(small);
      expect(await isAllowed(verify(small, token, alice))).toBe(true);
      expect(await isAllowed(verify(small, token, alice))).toBe(true);
      expect(await typeOf(verify(small, token, alice))).toBe(DenialType.INTERNAL_CONTEXT);
      await small.restart();
      expect(await typeOf(verify(small, token, alice))).toBe(DenialType.INTERNAL_CONTEXT);
      small.clock.advance(91_000);
      expect(await isAllowed(verify(small, token, alice))).toBe(true);
    } finally {
      await small.stop();
    }
  });

  it.each([
    ["https://DEPUTE.example:443/depute.tasks.v1.TaskService/CreateTask", true],
    [`${CALL.htu}?x=1`, true],
    [`${CALL.htu}/`, false],
    ["http://depute.example/depute.tasks.v1.TaskService/CreateTask", false],
    ["https://depute.example/depute.tasks.v1.TaskService/GetTask", false],
  ])("compares the target as RFC 9449 does: %s", async (htu, isSame) => {
    const { token } = await mint(platform);
    const jwt = prove(platform, alice, { token: requirePresent(token).token, htu });
    expect(await isAllowed(verify(platform, token, alice, { jwt }))).toBe(isSame);
  });

  it("binds a proof to the arguments of a tool call", async () => {
    const { token } = await mint(platform);
    const digest = argumentsDigest(engine, { query: "a" });
    const ask = (args: unknown, ard: string) => {
      const claims = { token: requirePresent(token).token, ...(args !== undefined && { arguments: args }) };
      const jwt = prove(platform, alice, claims);
      const proof = {
        jwt,
        method: CALL.htm,
        target: CALL.htu,
        argumentsDigest: Buffer.from(ard, "base64url"),
      };
      return isAllowed(verify(platform, token, alice, { proof }));
    };
    expect(await ask({ query: "a" }, digest)).toBe(true);
    expect(await ask({ query: "b" }, digest)).toBe(false);
    expect(await ask(undefined, digest)).toBe(false);
    expect(await ask({ query: "a" }, "")).toBe(false);
  });

  it("accepts a token without a proof if configured, with a log line, and returns no grants", async () => {
    const lax = await startPlatform(["--holder-proof", "optional"]);
    try {
      expect(lax.logged.join()).toContain("a holder can remove attenuations");
      const { token } = await mint(lax);
      const ask = (requested: typeof READ) =>
        lax.tokens.verifyToken({ token: requirePresent(token), requested });
      expect((await ask(readFile())).principal).toBe(id(alice));
      expect((await denialOf(ask(readFile("/elsewhere")))).granted).toBeUndefined();
      expect(await typeOf(verify(lax, token, mallory))).toBe(DenialType.INVALID_PROOF);
    } finally {
      await lax.stop();
    }
  });

  it("decides equally with the portable engine", async () => {
    const portable = await startPlatform(["--token-engine", "portable"]);
    try {
      const narrowed = await attenuate(portable, (await mint(portable)).token, alice, bob);
      expect(await isAllowed(verify(portable, narrowed.token, bob))).toBe(true);
      expect(await typeOf(verify(portable, narrowed.token, alice))).toBe(DenialType.INVALID_PROOF);
    } finally {
      await portable.stop();
    }
  });

  it("refuses a request without a capability", async () => {
    const { token } = await mint(platform);
    const refused = await refusal(platform.tokens.verifyToken({ token: requirePresent(token) }));
    expect(refused).toMatchObject({ reason: "INVALID_REQUEST", fields: ["requested"] });
  });

  it("denies a stripped attenuation without the key of the prefix's holder", async () => {
    const { token } = await mint(platform);
    const narrowed = await attenuate(platform, token, alice, bob, {
      allowedCapabilities: { capabilities: [] },
    });
    const parsed = parseToken(requirePresent(narrowed.token).token);
    if (!parsed.ok) throw new Error(parsed.denial.type);
    const { attenuations: _, signatures, ...rest } = parsed.token;
    const stripped = serialiseToken({ ...rest, attenuations: [], signatures: signatures.slice(0, 1) });
    expect(stripped.token).toBe(requirePresent(token).token);
    expect(await typeOf(verify(platform, token, bob))).toBe(DenialType.INVALID_PROOF);
  });
});

describe("a revoked token", () => {
  it("stays denied across a restart", async () => {
    const platform = await startPlatform();
    try {
      const { token, revocationId } = await mint(platform);
      await platform.revocations.revokeToken({ entry: revocation(platform, revocationId, alice) });
      await platform.restart();
      expect(await typeOf(verify(platform, token, alice))).toBe(DenialType.REVOKED);
    } finally {
      await platform.stop();
    }
  });
});

/** Sorts the members of objects into canonical order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, sorted(member)]),
  );
}
