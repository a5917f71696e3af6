import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { DenialReasonSchema, DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { systemClock } from "@depute/core";
import { type CallerSession, checkProof, generateKeypair, openSession, requestSession } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { describe, expect, test } from "vitest";
import { argumentsDigest } from "./digest.ts";
import { admitRights } from "./gate.ts";
import { heldToken, type KeySessions } from "./holder.ts";
import { provingTransport } from "./proving-transport.ts";
import { FakeAuthoriser, refusal } from "./testing/parts.ts";

const NOW = systemClock.now();
const AUDIENCE = "mcp:bench";
const PUBLIC_URL = "https://depute.example";
const key = generateKeypair(engine);

/** Opens a holder session between the key and a verifier in this process. */
function openedSession(audience: string, token?: string) {
  const opening = { htm: "POST", htu: `${PUBLIC_URL}/open`, now: NOW, ...(token !== undefined && { token }) };
  const request = requestSession(engine, key, { ...opening, audience });
  const opened = openSession(engine, request.proof, { ...opening, opens: audience });
  if (!opened.ok) throw new Error(opened.denial.type);
  return { verifier: opened.session, session: request.accept(opened.grant) };
}

/** Returns sessions that have this one until it is lost, and the number of losses. */
function sessionsWith(session: CallerSession | undefined) {
  let open = session;
  let losses = 0;
  const sessions: KeySessions = {
    ready: () => open,
    forget(lost) {
      losses++;
      if (open === lost) open = undefined;
    },
  };
  return { sessions, losses: () => losses };
}

describe("a held token proves a call", () => {
  const args = { path: "/docs" };
  const held = (sessions?: KeySessions) => {
    const own = { token: "docs", key, audience: AUDIENCE, now: () => NOW };
    return heldToken(sessions === undefined ? own : { ...own, sessions });
  };
  const expected = { htm: "MCP", htu: AUDIENCE, token: "docs", ard: argumentsDigest(args), now: NOW };

  test.each([
    ["without sessions", undefined],
    ["while no session is open", sessionsWith(undefined).sessions],
  ])("by a signature %s", async (_, sessions) => {
    const presentation = held(sessions);
    const proof = await presentation.prove(args);
    expect(checkProof(engine, proof?.jwt, expected)).toMatchObject({ ok: true });
    expect(presentation.loseSession?.()).toBe(false);
  });

  test("by a code of the open session, with the call's target and arguments", async () => {
    const { session, verifier } = openedSession(AUDIENCE, "docs");
    const proof = await held(sessionsWith(session).sessions).prove(args);
    expect(proof).toMatchObject({ method: "MCP", target: AUDIENCE });
    expect(verifier.check(engine, proof?.jwt, expected)).toMatchObject({ ok: true });
    const others = { ...expected, ard: argumentsDigest({ path: "/secret" }) };
    expect(verifier.check(engine, proof?.jwt, others)).toMatchObject({ ok: false });
  });
});

describe("a call whose session the platform has lost", () => {
  class Restarted extends FakeAuthoriser {
    readonly #refused: DenialType;
    constructor(refused: DenialType) {
      super();
      this.#refused = refused;
    }
    override async verify(...[presented, rights, digest]: Parameters<FakeAuthoriser["verify"]>) {
      const verdict = await super.verify(presented, rights, digest);
      // A proof of a holder session has four parts, and a signed proof three.
      if (presented.proof?.jwt.split(".").length !== 4) return verdict;
      return { ok: false, denial: create(DenialReasonSchema, { type: this.#refused }) } as const;
    }
  }
  const needed = {
    rights: [{ namespace: "data", action: "query", resource: "docs" }],
    proved: {},
    name: "read",
  };
  const lost = (refused: DenialType, session: CallerSession | undefined) => {
    const authoriser = new Restarted(refused);
    const { sessions, losses } = sessionsWith(session);
    const presentation = heldToken({ token: "docs", key, audience: AUDIENCE, now: () => NOW, sessions });
    const admitted = admitRights({ authoriser, requireToken: true }, needed, presentation);
    return { admitted, authoriser, losses };
  };

  test("is verified once more, with a signature", async () => {
    const { session } = openedSession(AUDIENCE, "docs");
    const { admitted, authoriser, losses } = lost(DenialType.INVALID_PROOF, session);
    expect(await admitted).toMatchObject({ principal: "holder" });
    expect([authoriser.verified.length, losses()]).toEqual([2, 1]);
  });

  test("is refused at once for another denial", async () => {
    const { session } = openedSession(AUDIENCE, "docs");
    const { admitted, authoriser, losses } = lost(DenialType.REVOKED, session);
    expect(await refusal(admitted)).toMatchObject({ data: { type: "revoked" } });
    expect([authoriser.verified.length, losses()]).toEqual([1, 0]);
  });
});

describe("a call to the platform", () => {
  const htu = `${PUBLIC_URL}/depute.tokens.v1.TokenService/GetIssuer`;
  /** Makes a call through a transport that refuses codes of sessions with an error. */
  async function called(session: CallerSession | undefined, refusesCodes?: Code) {
    const proofs: string[] = [];
    const platform = {
      async unary(...[, , , header]: Parameters<Transport["unary"]>) {
        const proof = new Headers(header).get("dpop") ?? "";
        proofs.push(proof);
        if (proof.split(".").length === 4 && refusesCodes !== undefined)
          throw new ConnectError("no", refusesCodes);
        return {} as never;
      },
    } as unknown as Transport;
    const { sessions } = sessionsWith(session);
    const transport = provingTransport(platform, key, PUBLIC_URL, sessions);
    const call = transport.unary(TokenService.method.getIssuer, undefined, undefined, {}, {});
    const code = await call.then(
      () => undefined,
      (thrown: unknown) => ConnectError.from(thrown).code,
    );
    return { proofs, code };
  }

  test("has a code of the open session", async () => {
    const { session, verifier } = openedSession(PUBLIC_URL);
    const { proofs } = await called(session);
    expect(proofs).toHaveLength(1);
    expect(verifier.check(engine, proofs[0], { htm: "POST", htu, now: NOW })).toMatchObject({ ok: true });
  });

  test.each([
    ["is made again with a signature if its proof is refused", Code.Unauthenticated, 2, undefined],
    ["is not made again after another error", Code.Unavailable, 1, Code.Unavailable],
  ])("%s", async (_, refused, calls, code) => {
    const result = await called(openedSession(PUBLIC_URL).session, refused);
    expect([result.proofs.length, result.code]).toEqual([calls, code]);
  });
});
