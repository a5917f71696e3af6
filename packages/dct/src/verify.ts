import { decodeBase64Url } from "@depute/core";
import { allows, type Level, walkChain } from "./chain.ts";
import type { VerificationContext } from "./context.ts";
import { type DenialReason, deny, TokenError } from "./denial.ts";
import type { CryptoEngine } from "./engine.ts";
import { readRemembered, rememberedKey } from "./fast/words.ts";
import { type PatternReader, parsePattern, parseResource } from "./glob.ts";
import { CLOCK_SKEW_MS, MAX_LIFETIME_MS } from "./limits.ts";
import { splitRequirement } from "./names.ts";
import type { ReadToken } from "./payload.ts";
import { parsePrincipal } from "./principal.ts";
import { type AcceptedProof, checkProof } from "./proof.ts";
import { rightfulRevokers } from "./revocation.ts";
import { type ReadingPath, readTexts, type TokenInput, tokenText } from "./serialise.ts";
import { DEFAULT_RULES, isCount } from "./structure.ts";
import { parseTime } from "./time.ts";
import type { Capability, SignedJSONToken, VerifiedBlock } from "./types.ts";
import type { VerifiedPrefixes } from "./verified-prefixes.ts";
import type { VerifiedToken } from "./verified-tokens.ts";

/** The grants of a valid token (DelegateOS 10.1 step 8), and its holder. */
export interface AuthorizedScope {
  capabilities: Capability[];
  remainingBudgetMicrocents: number;
  /** Number of delegations above the last block. */
  chainDepth: number;
  /** The greatest chainDepth that further delegations may have. */
  maxChainDepth: number;
  contractId: string;
  delegationId: string;
  issuer: string;
  /** The current delegatee, which must prove possession. */
  holder: string;
  /** Milliseconds since 1970. */
  expiresAt: number;
}

/**
 * The result of a verification. `proof` is present if the context had a presentation. The caller must still refuse
 * a replayed proof. For a proof of a holder session, the caller must consume the call's number.
 */
export type VerifyResult =
  | {
      ok: true;
      scope: AuthorizedScope;
      blocks: VerifiedBlock[];
      token: SignedJSONToken;
      proof?: AcceptedProof;
    }
  | { ok: false; denial: DenialReason };

/** Options of a verification that do not affect its result. */
export interface VerifyOptions {
  /** `fast` when absent. */
  readonly path?: ReadingPath;
  /**
   * A cache of signatures that a verifier has found valid, and of recent tokens with these signatures. Without it, every
   * token is read and every signature verified.
   */
  readonly verified?: VerifiedPrefixes;
}

/** Maximum length of the part of a request that a denial repeats, in UTF-16 code units. */
const MAX_ECHO = 64;

/**
 * Verifies a token in the order of DelegateOS 10.1. Every input and context gives a result, never an exception,
 * and no state changes. The proof of possession is checked after the chain, because the chain determines the
 * expected holder. Checks that reveal the token's grants come after the proof.
 */
export function verifyToken(
  engine: CryptoEngine,
  input: TokenInput,
  ctx: VerificationContext,
  options: VerifyOptions = {},
): VerifyResult {
  try {
    assertContext(ctx);
    // The token's text is read only once, so that the checks and the proof's binding use the same text.
    return verify(engine, tokenText(input), ctx, options);
  } catch (error) {
    if (error instanceof TokenError) return { ok: false, denial: error.denial };
    // Either a callback of the context threw, or the context does not fit its type.
    return { ok: false, denial: { type: "internal_context", detail: "fault in verification" } };
  }
}

function verify(
  engine: CryptoEngine,
  text: string,
  ctx: VerificationContext,
  { path = "fast", verified }: VerifyOptions,
): VerifyResult {
  const words = path === "fast" ? REMEMBERED : PLAIN;
  const { token, ids } = signedToken(engine, text, ctx, { path, verified }, words);
  const levels = walkChain(token, ctx.subContract, words.readPattern);
  const last = levels.at(-1) as Level;
  assertDepth(last, ctx);
  const proof = assertHeld(engine, text, last, ctx);
  assertTimes(token, last, ctx);
  const remainingBudgetMicrocents = remainingBudget(levels, ids, ctx);
  assertContract(last, ctx);
  assertGranted(last, ctx, words);
  const scope: AuthorizedScope = {
    capabilities: [...last.capabilities],
    remainingBudgetMicrocents,
    chainDepth: last.chainDepth,
    maxChainDepth: last.chainDepth + last.remainingDepth,
    contractId: last.contractId,
    delegationId: last.delegationId,
    issuer: token.authority.issuer,
    holder: last.delegatee,
    expiresAt: last.expiresAt,
  };
  const blocks = levels.map((level, i) => verifiedBlock(level, ids[i] as string));
  return { ok: true, scope, blocks, token, ...(proof !== undefined && { proof }) };
}

/**
 * Steps 1 to 3: reads the token, and checks its revocations, its root and its signatures. A cached token is not read
 * again, because its values and the validity of its signatures depend on its text alone.
 */
function signedToken(
  engine: CryptoEngine,
  text: string,
  ctx: VerificationContext,
  { path, verified }: { path: ReadingPath; verified?: VerifiedPrefixes | undefined },
  words: Words,
): VerifiedToken {
  const rules = ctx.rules ?? DEFAULT_RULES;
  const cache = path === "fast" ? verified?.tokens : undefined;
  const known = cache?.find(engine, text, rules);
  if (known !== undefined) {
    assertNotRevoked(known.token, known.ids, ctx);
    assertTrusted(known.token, ctx.trustedRoots);
    return known;
  }
  const read = readTexts(text, rules, path);
  const { token } = read;
  const ids = read.texts.revocationIds(engine);
  assertNotRevoked(token, ids, ctx);
  assertSigned(engine, read, ids, ctx.trustedRoots, words, verified);
  cache?.add(engine, text, rules, { token, ids });
  return { token, ids };
}

/**
 * Step 2: checks that no block is revoked and that the revocations are not stale. As in the specification, this
 * check comes before the check of signatures. The order is safe: the check changes no state, and the sender of a
 * forged token learns only whether the ids in that token are revoked, and whether the revocations are stale.
 */
function assertNotRevoked(token: SignedJSONToken, ids: readonly string[], ctx: VerificationContext): void {
  for (const [i, id] of ids.entries()) {
    if (ctx.revocations.isRevoked(id, rightfulRevokers(token, i)) !== false) deny("revoked", blockName(i));
  }
  if (ctx.revocations.isStale?.(ctx.now)) deny("revocation_state_stale");
}

/** The detail of the denial of a token whose root is not trusted. */
export const UNTRUSTED_ROOT = "authority.issuer: not a trusted root";

/**
 * Step 3. Each block is verified under the key inside the block. The `signer` beside a signature is not signed:
 * a verifier that trusted `signer` would accept a forged root.
 */
function assertSigned(
  engine: CryptoEngine,
  { token, texts, signatures: decoded }: ReadToken,
  ids: readonly string[],
  trustedRoots: ReadonlySet<string>,
  words: Words,
  verified: VerifiedPrefixes | undefined,
): void {
  const { authority, attenuations, signatures } = token;
  if (signatures.length !== attenuations.length + 1) deny("invalid_signature", "signatures: not one a block");
  assertTrusted(token, trustedRoots);
  // The number of leading blocks whose signatures are cached as valid. `signer` and `covers` are not signed, so they
  // are compared for every block.
  const verifiedCount = verified?.find(engine, ids, signatures) ?? 0;
  for (let i = 0; i < signatures.length; i++) {
    const signer = i === 0 ? authority.issuer : (attenuations[i - 1]?.attenuator ?? "");
    const entry = signatures[i];
    if (entry?.signer !== signer) deny("invalid_signature", `signatures[${i}].signer`);
    if (entry.covers !== (i === 0 ? "authority" : i - 1))
      deny("invalid_signature", `signatures[${i}].covers`);
    if (i < verifiedCount) continue;
    const signature = decoded?.[i] ?? decodeBase64Url(entry.signature);
    const key = words.readKey(signer);
    if (signature === undefined || key === undefined) deny("invalid_signature", blockName(i));
    if (!engine.verify(signature, texts.signedDigest(engine, i), key))
      deny("invalid_signature", blockName(i));
  }
  if (verifiedCount < signatures.length) verified?.add(engine, ids, signatures);
}

function assertTrusted({ authority }: SignedJSONToken, trustedRoots: ReadonlySet<string>): void {
  if (!trustedRoots.has(authority.issuer)) deny("invalid_signature", UNTRUSTED_ROOT);
}

function assertDepth(last: Level, ctx: VerificationContext): void {
  if (ctx.maxChainDepth !== undefined && last.chainDepth > ctx.maxChainDepth) {
    deny("chain_depth_exceeded", "of the verifier", { max: ctx.maxChainDepth, actual: last.chainDepth });
  }
}

function assertHeld(
  engine: CryptoEngine,
  token: string,
  last: Level,
  ctx: VerificationContext,
): AcceptedProof | undefined {
  const { holder, now } = ctx;
  if (typeof holder !== "object") return undefined;
  const { proof, session } = holder;
  const expected = { ...holder, principal: last.delegatee, token, now };
  const result =
    session === undefined ? checkProof(engine, proof, expected) : session.check(engine, proof, expected);
  return result.ok ? result.proof : deny(result.denial.type, result.denial.detail);
}

/** Step 5: checks the times. As in the specification, a token is still valid in the millisecond in which it expires. */
function assertTimes(token: SignedJSONToken, last: Level, ctx: VerificationContext): void {
  const issuedAt = parseTime(token.authority.issuedAt) ?? Number.NaN;
  const lifetime = (parseTime(token.authority.expiresAt) ?? Number.NaN) - issuedAt;
  if (!(issuedAt <= ctx.now + (ctx.clockSkewMs ?? CLOCK_SKEW_MS))) {
    deny("malformed_token", "authority.issuedAt: in the future");
  }
  if (!(lifetime <= (ctx.maxLifetimeMs ?? MAX_LIFETIME_MS)))
    deny("malformed_token", "authority.expiresAt: lifetime");
  if (ctx.now > last.expiresAt) deny("expired");
}

/**
 * Step 6: checks the budget. If the context has one spent amount, only the last block's budget is compared with it.
 * If the context has an amount for each block, each block's budget is compared with that block's amount. Returns the
 * least remaining budget, in microcents.
 */
function remainingBudget(levels: readonly Level[], ids: readonly string[], ctx: VerificationContext): number {
  const { spentMicrocents } = ctx;
  let remaining = Number.MAX_SAFE_INTEGER;
  for (const [i, level] of levels.entries()) {
    if (typeof spentMicrocents === "number" && i < levels.length - 1) continue;
    const spent = typeof spentMicrocents === "number" ? spentMicrocents : spentMicrocents(ids[i] as string);
    if (!isCount(spent)) deny("internal_context", "spentMicrocents");
    if (spent >= level.maxBudgetMicrocents) deny("budget_exceeded", blockName(i), { level: i });
    remaining = Math.min(remaining, level.maxBudgetMicrocents - spent);
  }
  return remaining;
}

/** Checks that the token is for the contract, and covers the contract's required capabilities (DelegateOS 5.2). */
function assertContract(last: Level, ctx: VerificationContext): void {
  if (ctx.contractId !== undefined && last.contractId !== ctx.contractId)
    deny("contract_mismatch", "contractId");
  for (const [i, text] of (ctx.requiredCapabilities ?? []).entries()) {
    const required = splitRequirement(text);
    const covered = last.capabilities.some((granted) => {
      return granted.namespace === required?.namespace && granted.action === required.action;
    });
    if (!covered) deny("contract_mismatch", `requiredCapabilities[${i}]`);
  }
}

/** Step 7: checks that the token grants the request. */
function assertGranted(last: Level, ctx: VerificationContext, { readPattern }: Words): void {
  if (ctx.request === undefined) return;
  const { namespace, action, resource } = ctx.request;
  const path = typeof resource === "string" ? parseResource(resource, namespace) : { problem: "not text" };
  if ("problem" in path) deny("invalid_resource", `request: ${path.problem}`);
  if (last.capabilities.some((capability) => allows(capability, namespace, action, path, readPattern)))
    return;
  const requested = { namespace: cut(namespace), action: cut(action), resource: cut(resource) };
  const granted = ctx.holder === "bearer" ? {} : { granted: [...last.capabilities] };
  deny("capability_not_granted", undefined, { requested, ...granted });
}

function verifiedBlock(level: Level, revocationId: string): VerifiedBlock {
  const { signer, delegatee, delegationId, contractId, expiresAt, maxBudgetMicrocents } = level;
  return { revocationId, signer, delegatee, delegationId, contractId, expiresAt, maxBudgetMicrocents };
}

/** The parsers of principals and resource patterns for a verification, with or without a cache. */
interface Words {
  readonly readKey: (id: string) => Uint8Array | undefined;
  readonly readPattern: PatternReader;
}

const PLAIN: Words = { readKey: parsePrincipal, readPattern: parsePattern };
const REMEMBERED: Words = { readKey: rememberedKey, readPattern: readRemembered };

function blockName(level: number): string {
  return level === 0 ? "authority" : `attenuations[${level - 1}]`;
}

function cut(text: string): string {
  return text.slice(0, MAX_ECHO).toWellFormed();
}

/** Throws TokenError with internal_context for a value such as NaN, which would make comparisons wrong. */
function assertContext(ctx: VerificationContext): void {
  const wrong = wrongMember(ctx);
  if (wrong !== undefined) deny("internal_context", wrong);
}

function wrongMember(ctx: VerificationContext): string | undefined {
  if (!(ctx.trustedRoots instanceof Set)) return "trustedRoots";
  if (typeof ctx.revocations?.isRevoked !== "function") return "revocations";
  if (!isCount(ctx.now)) return "now";
  if (typeof ctx.spentMicrocents !== "function" && !isCount(ctx.spentMicrocents)) return "spentMicrocents";
  for (const member of ["maxLifetimeMs", "clockSkewMs", "maxChainDepth"] as const) {
    if (ctx[member] !== undefined && !isCount(ctx[member])) return member;
  }
  const { holder, request } = ctx;
  const isPresentation = typeof holder === "object" && holder !== null;
  if (holder !== "bearer" && holder !== "proved" && !isPresentation) return "holder";
  if (isPresentation && (typeof holder.htm !== "string" || typeof holder.htu !== "string")) return "holder";
  if (
    request !== undefined &&
    (typeof request?.namespace !== "string" || typeof request.action !== "string")
  ) {
    return "request";
  }
  return undefined;
}
