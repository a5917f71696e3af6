import {
  createProof,
  openSession,
  portableEngine,
  requestSession,
  VerifiedPrefixes,
  type VerifyOptions,
  verifyToken,
} from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import type { Benchmark } from "../bench.ts";
import { verifyLiterally } from "./literal.ts";
import { contextOf, NOW, REVOCATIONS, ROOT, revocationIds, revoked, TOKENS, tokens } from "./tokens.ts";

const revocations = revoked(REVOCATIONS);
const literalIds = new Set(revocationIds(REVOCATIONS));
const context = contextOf(revocations);

const AUDIENCE = "https://depute.example";
const HTM = "POST";
const HTU = "https://depute.example/depute.tokens.v1.TokenService/VerifyToken";

/**
 * The literal implementation follows only the specification's text. The text requires no holder proof, so this
 * implementation cannot check one.
 */
function literal(links: number): () => void {
  const source = tokens(links);
  const fixed = {
    rootPublicKey: ROOT,
    revocations: { isRevoked: (id: string) => literalIds.has(id) },
    now: new Date(NOW + 1000).toISOString(),
    spentMicrocents: 10,
    namespace: "docs",
    operation: "read",
  };
  return () => {
    const { text, resource } = source.next();
    const result = verifyLiterally({ token: text, format: "delegateos-sjt-v1" }, { ...fixed, resource });
    if ("type" in result) throw new Error(String(result.type));
  };
}

function ours(links: number, options: VerifyOptions, one = engine, ctx = context): () => void {
  const source = tokens(links);
  return () => {
    const { text, resource } = source.next();
    const request = { namespace: "docs", action: "read", resource };
    const result = verifyToken(one, text, { ...ctx, request }, options);
    if (!result.ok) throw new Error(result.denial.type);
  };
}

/**
 * Makes calls that each have a separate proof. The proofs are made before the measurement, and every round reuses them.
 */
function proved(links: number): () => void {
  const source = tokens(links);
  const verified = new VerifiedPrefixes();
  const calls = Array.from({ length: TOKENS }, () => {
    const { text, resource } = source.next();
    const proof = createProof(engine, source.holder, { htm: HTM, htu: HTU, token: text, now: NOW });
    return { text: Buffer.from(text), proof: Buffer.from(proof), resource };
  });
  let turn = 0;
  return () => {
    const { text, proof, resource } = calls[turn++ % TOKENS] as (typeof calls)[number];
    const holder = { proof: proof.toString("latin1"), htm: HTM, htu: HTU };
    const request = { namespace: "docs", action: "read", resource };
    const result = verifyToken(
      engine,
      text.toString("latin1"),
      { ...context, holder, request },
      { verified },
    );
    if (!result.ok) throw new Error(`${result.denial.type} ${result.denial.detail}`);
  };
}

/** Makes calls that each have a separate code, in a holder session that is already open. */
function inSession(links: number): () => void {
  const source = tokens(links);
  const verified = new VerifiedPrefixes();
  const calls = Array.from({ length: TOKENS }, () => {
    const { text, resource } = source.next();
    const opening = { htm: HTM, htu: HTU, token: text, now: NOW };
    const request = requestSession(engine, source.holder, { ...opening, audience: AUDIENCE });
    const opened = openSession(engine, request.proof, { ...opening, opens: AUDIENCE });
    if (!opened.ok) throw new Error(opened.denial.type);
    const proof = request.accept(opened.grant).prove({ htm: HTM, htu: HTU, now: NOW });
    return { text: Buffer.from(text), proof: Buffer.from(proof), resource, session: opened.session };
  });
  let turn = 0;
  return () => {
    const { text, proof, resource, session } = calls[turn++ % TOKENS] as (typeof calls)[number];
    const holder = { proof: proof.toString("latin1"), session, htm: HTM, htu: HTU };
    const request = { namespace: "docs", action: "read", resource };
    const result = verifyToken(
      engine,
      text.toString("latin1"),
      { ...context, holder, request },
      { verified },
    );
    if (!result.ok) throw new Error(`${result.denial.type} ${result.denial.detail}`);
  };
}

export default function benchmarks(): Benchmark[] {
  const depths = [0, 2, 5].map((links) => ({
    name: `verify, ${links} attenuations, ${REVOCATIONS} revocations`,
    contenders: [
      { name: "literal stack", run: literal(links) },
      { name: "reference path", run: ours(links, { path: "reference" }) },
      { name: "native", run: ours(links, {}), goal: { times: 20 } },
      {
        name: "native, prefix known",
        run: ours(links, { verified: new VerifiedPrefixes() }),
        goal: { times: 100 },
      },
      { name: "portable", run: ours(links, {}, portableEngine) },
    ],
  }));
  const holder: Benchmark = {
    name: "holder proof, prefix known, 2 attenuations",
    contenders: [
      { name: "literal stack, no proof", run: literal(2) },
      { name: "proof", run: proved(2), goal: { times: 40 } },
      { name: "call of a session", run: inSession(2) },
    ],
  };
  return [...depths, holder];
}
