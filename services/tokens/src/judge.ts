import { create } from "@bufbuild/protobuf";
import {
  type VerifyTokenRequest,
  type VerifyTokenResponse,
  VerifyTokenResponseSchema,
} from "@depute/contracts/depute/tokens/v1/token_service_pb";
import type { HolderProof } from "@depute/contracts/depute/tokens/v1/verification_pb";
import type { Clock } from "@depute/core";
import {
  type AcceptedProof,
  type CryptoEngine,
  type DenialReason,
  type Keypair,
  openSession,
  parseTime,
  revocationIds,
  rightfulRevokers,
  type SessionGrant,
  type SignedJSONToken,
  type SubContractRule,
  type TokenInput,
  type VerificationContext,
  type VerifiedBlock,
  VerifiedPrefixes,
  type VerifyResult,
  verifyToken,
} from "@depute/dct";
import type { AuditLog } from "./audit-log.ts";
import type { BlockNotes } from "./block-notes.ts";
import type { ChainContracts, ContractLineages } from "./contract-lineages.ts";
import { HolderProofs } from "./holder-proofs.ts";
import type { RevocationLog } from "./revocation-log.ts";
import type { RevocationState } from "./revocation-state.ts";
import { type CallPlace, outOfPlace } from "./rules/bindings.ts";
import { type Block, blocksOf, parsed, toAuthorizedScope, toTokenBlocks } from "./rules/blocks.ts";
import { reasonText, toDenialReason } from "./rules/denials.ts";
import { toSerialized } from "./rules/documents.ts";
import { chainHolds, isAfterBudget, isAfterProof } from "./rules/order.ts";
import { remaining, spentUp } from "./rules/spend.ts";
import { expectedTarget } from "./rules/target.ts";
import type { SeenProofs } from "./seen-proofs.ts";

interface JudgeOptions {
  engine: CryptoEngine;
  clock: Clock;
  trustedRoots: ReadonlySet<string>;
  isProofRequired: boolean;
  state: RevocationState;
  revocations: RevocationLog;
  seen: SeenProofs;
  audit: AuditLog;
  notes: BlockNotes;
  lineages: ContractLineages;
  /** Looks at the revocation log now. Throws when it cannot be read. */
  look(): Promise<void>;
  /** Signs the terms of sessions: the platform's root. */
  verifier: Keypair;
  /** Milliseconds from issuedAt to expiresAt of a token that is accepted. */
  maxLifetimeMs: number;
  /** Milliseconds that issuedAt may lie ahead of the clock. */
  clockSkewMs: number;
}

/** A session that was opened, or why none was. */
export type SessionResult = { ok: true; grant: SessionGrant } | { ok: false; denial: DenialReason };

/** Of a chain that nobody presents. */
const BEARER = { holder: "bearer", spentMicrocents: 0 } as const;

/** What is asked of a chain where nobody presents it: nothing by itself. */
type Question = Pick<VerificationContext, "request" | "contractId" | "requiredCapabilities">;

/** A proof that holds, or why it does not. */
export type ProofResult = { ok: true; principal: string } | { ok: false; denial: DenialReason };

/**
 * Decides, with packages/dct as the judge of bytes and this service's memory of revocations and used proofs.
 */
export class Judge {
  readonly #options: JudgeOptions;
  readonly #proofs: HolderProofs;
  /** Signatures that were found to hold, and nothing else: every other question is asked at every use. */
  readonly #verified = new VerifiedPrefixes();

  constructor(options: JudgeOptions) {
    this.#options = options;
    this.#proofs = new HolderProofs(options);
  }

  /**
   * Whether the bearer of a token may do one thing now (DelegateOS 10.1).
   *
   * A proof is used up as soon as it is known to be genuine, whatever is decided afterwards: were it used up by an
   * allowed call only, whoever saw the proof of a denied call could present it again when the answer has changed. It is
   * not used up by a denial before that point, so that nobody fills the memory of proofs with tokens that he made up.
   *
   * Using it up may wait for the store. What was revoked meanwhile is looked at again after it, in the same turn of the
   * event loop as the answer: once a revocation is acknowledged no token with that block is allowed.
   */
  async verify(request: VerifyTokenRequest, caller: string): Promise<VerifyTokenResponse> {
    const { audit, clock, engine, state } = this.#options;
    audit.assertRoom();
    const now = clock.now();
    const input = toSerialized(request.token);
    const presentation = this.#proofs.presentationOf(request.proof);
    const isBearer = presentation.proof === undefined && !this.#options.isProofRequired;
    const minSequence = Number(request.minRevocationSequence);
    if (state.sequence < minSequence) await this.#look();
    const isBehind = state.sequence < minSequence;
    const contracts = this.#options.lineages.ofChain();
    const context: VerificationContext = {
      ...this.#context(now, contracts, isBehind),
      holder: isBearer ? "bearer" : presentation,
      spentMicrocents: Number(request.spentMicrocents),
      requiredCapabilities: request.requiredCapabilities,
      ...(request.requested !== undefined && { request: request.requested }),
      ...(request.contractId !== "" && { contractId: request.contractId }),
    };
    const place = { target: request.proof?.target ?? "", tenant: request.tenant };
    const decided = await this.#decide(input, context, contracts);
    const result = await this.#withStore(decided, input, context, place);
    const token = result.ok ? result.token : parsed(input);
    const proof = result.ok
      ? result.proof
      : this.#proofBehind(result.denial, token, input.token, request, now);
    const used =
      proof === undefined ? undefined : await this.#proofs.useUp(proof, "token", request.proof?.jwt ?? "");
    const blocks = result.ok ? result.blocks : token === undefined ? [] : blocksOf(engine, token);
    const denial = used ?? (result.ok ? this.lastLook(result.token, blocks) : result.denial);
    if (denial?.type === "revoked" && token !== undefined) await this.#settle(token, blocks, input, caller);
    const principal = result.ok ? result.scope.holder : (proof?.principal ?? "");
    this.#note("verify_token", caller, principal, denial, blocks);
    const revocationSequence = BigInt(state.sequence);
    if (denial !== undefined || !result.ok) {
      const reason = toDenialReason(denial ?? { type: "internal_context" });
      return create(VerifyTokenResponseSchema, {
        result: { case: "denial", value: reason },
        revocationSequence,
      });
    }
    return create(VerifyTokenResponseSchema, {
      result: { case: "scope", value: toAuthorizedScope(result.scope) },
      principal,
      blocks: toTokenBlocks(blocks),
      revocationSequence,
    });
  }

  /** Whose key made a holder proof (RFC 9449); uses it up. With a token the proof has to name that token. */
  async verifyProof(proof: HolderProof, token: string | undefined, caller: string): Promise<ProofResult> {
    const { audit, clock } = this.#options;
    audit.assertRoom();
    const checked = this.#proofs.check(proof, { now: clock.now(), ...(token !== undefined && { token }) });
    const used = checked.ok ? await this.#proofs.useUp(checked.proof, "identity", proof.jwt) : checked.denial;
    const principal = checked.ok ? checked.proof.principal : "";
    this.#note("verify_proof", caller, principal, used, []);
    return used === undefined ? { ok: true, principal } : { ok: false, denial: used };
  }

  /**
   * Opens a session for the holder of a key, and with a token for its holder alone. The proof is used up as VerifyToken
   * uses one up.
   */
  async openSession(
    { jwt, method: htm, target }: HolderProof,
    token: string | undefined,
    { audience, lifetimeMs }: { audience: string; lifetimeMs?: number },
  ): Promise<SessionResult> {
    const { audit, clock, engine, verifier } = this.#options;
    audit.assertRoom();
    const now = clock.now();
    const checked = token === undefined ? undefined : await this.check(token);
    const expected = {
      ...{ htm, htu: expectedTarget(jwt, target), opens: audience, now },
      ...(token !== undefined && { token }),
      ...(checked?.ok && { principal: checked.scope.holder }),
    };
    const opened = openSession(engine, jwt === "" ? undefined : jwt, expected, {
      verifier,
      ...(lifetimeMs !== undefined && { lifetimeMs }),
      ...(checked?.ok && { notAfter: checked.scope.expiresAt }),
    });
    const kind = token === undefined ? "identity" : "token";
    let denial = checked?.ok === false ? checked.denial : undefined;
    if (!opened.ok) denial ??= opened.denial;
    // A token's denial comes first, but only a proof that holds beside a chain that holds is used up.
    else if (denial === undefined) denial = await this.#proofs.useUp(opened.proof, kind, jwt);
    if (denial === undefined && opened.ok && !this.#proofs.keep(opened.session, now)) {
      denial = { type: "internal_context", detail: "no room for the session" };
    }
    const blocks = checked?.ok ? checked.blocks : [];
    this.#note("open_session", "", opened.ok ? opened.proof.principal : "", denial, blocks);
    if (denial !== undefined || !opened.ok)
      return { ok: false, denial: denial ?? { type: "internal_context" } };
    return { ok: true, grant: opened.grant };
  }

  /** Closes the session that a proof of it names. */
  async closeSession(proof: HolderProof, token: string | undefined): Promise<ProofResult> {
    const session = this.#proofs.sessionOf(proof.jwt);
    if (session === undefined) return { ok: true, principal: "" };
    const result = await this.verifyProof(proof, token, "");
    if (result.ok) this.#proofs.close(session);
    return result;
  }

  /** Whether a chain is sound now and answers a question, where nobody presents it. */
  async check(input: TokenInput, question: Question = {}): Promise<VerifyResult> {
    const { clock, lineages } = this.#options;
    const contracts = lineages.ofChain();
    const context = { ...this.#context(clock.now(), contracts), ...BEARER, ...question };
    const result = await this.#decide(input, context, contracts);
    const denial = result.ok ? this.lastLook(result.token, result.blocks) : undefined;
    return denial === undefined ? result : { ok: false, denial };
  }

  /**
   * The blocks of a chain whose signatures hold and whose blocks narrow, revoked and expired or not; what it proves is
   * who may revoke what.
   */
  async provenChain(
    input: TokenInput,
  ): Promise<{ ok: true; blocks: Block[] } | { ok: false; denial: DenialReason }> {
    const { clock, engine } = this.#options;
    const result = await this.#decideUnrevoked(input, clock.now());
    if (!result.ok && !chainHolds(result.denial)) return result;
    const token = result.ok ? result.token : parsed(input);
    return { ok: true, blocks: token === undefined ? [] : blocksOf(engine, token) };
  }

  /** The blocks of a chain that holds, or would if it were neither revoked nor expired, with their limits. */
  async provenLevels(
    input: TokenInput,
  ): Promise<{ ok: true; blocks: VerifiedBlock[] } | { ok: false; denial: DenialReason }> {
    const { clock } = this.#options;
    const token = parsed(input);
    // At the moment in which it was issued no sound token is over.
    const now = parseTime(token?.authority.issuedAt ?? "") ?? clock.now();
    return this.#decideUnrevoked(input, now);
  }

  /** The rule for a chain that is about to be made: the contracts along it are then known, if the verifier answers. */
  async subContractsOf(blocks: readonly { readonly contractId: string }[]): Promise<SubContractRule> {
    const contracts = this.#options.lineages.ofChain();
    await contracts.learn(blocks);
    return contracts.isPart;
  }

  #decideUnrevoked(input: TokenInput, now: number): Promise<VerifyResult> {
    const contracts = this.#options.lineages.ofChain();
    const revocations = { isRevoked: () => false };
    return this.#decide(input, { ...this.#context(now, contracts), ...BEARER, revocations }, contracts);
  }

  /**
   * Verifies, and asks the verifier where the chain goes on in another contract whose lineage is not known here. The
   * signatures hold by then, so that nobody makes it ask with tokens that he made up.
   */
  async #decide(
    input: TokenInput,
    context: VerificationContext,
    contracts: ChainContracts,
  ): Promise<VerifyResult> {
    const result = this.#verify(input, context);
    if (result.ok || !contracts.isUnsure) return result;
    const token = parsed(input);
    if (token === undefined) return result;
    if (await contracts.learn([token.authority, ...token.attenuations])) return this.#verify(input, context);
    const { type, detail = "" } = result.denial;
    return { ok: false, denial: { type, detail: `${detail}: the verifier does not answer` } };
  }

  /**
   * Counts what was spent and reserved under each block (DelegateOS 10.1 step 6), and holds a token that is otherwise
   * allowed to where its blocks count. The store is asked only for a token that got as far as that step; of one that was
   * denied later the step is repeated, since its reason comes first.
   */
  async #withStore(
    result: VerifyResult,
    input: TokenInput,
    context: VerificationContext,
    place: CallPlace,
  ): Promise<VerifyResult> {
    const { engine, notes } = this.#options;
    if (!result.ok && !isAfterBudget(result.denial)) return result;
    const token = result.ok ? result.token : parsed(input);
    if (token === undefined) return result;
    const ids = result.ok
      ? result.blocks.map(({ revocationId }) => revocationId)
      : revocationIds(engine, token);
    const noted = await notes.read(ids);
    if (noted === undefined) return result;
    const { counted, bindings } = noted;
    const misplaced = outOfPlace(bindings, place);
    const inPlace = (allowed: VerifyResult): VerifyResult => {
      return allowed.ok && misplaced !== undefined ? { ok: false, denial: misplaced } : allowed;
    };
    if (counted.every((amount) => amount === 0)) return inPlace(result);
    // The caller's own count is of the last block.
    const own = typeof context.spentMicrocents === "number" ? context.spentMicrocents : 0;
    const last = ids.length - 1;
    const total = counted.map((amount, i) =>
      Math.min(amount + (i === last ? own : 0), Number.MAX_SAFE_INTEGER),
    );
    if (!result.ok) {
      const spentMicrocents = (id: string) => total[ids.indexOf(id)] ?? Number.MAX_SAFE_INTEGER;
      return this.#verify(input, { ...context, spentMicrocents });
    }
    const levels = result.blocks.map(({ maxBudgetMicrocents }, i) => {
      return { maxBudgetMicrocents, counted: total[i] ?? Number.MAX_SAFE_INTEGER };
    });
    const denial = spentUp(levels);
    if (denial !== undefined) return { ok: false, denial };
    return inPlace({ ...result, scope: { ...result.scope, remainingBudgetMicrocents: remaining(levels) } });
  }

  #context(
    now: number,
    { isPart: subContract }: ChainContracts,
    isBehind = false,
  ): Omit<VerificationContext, "holder" | "spentMicrocents"> {
    const { trustedRoots, state, maxLifetimeMs, clockSkewMs } = this.#options;
    const isRevoked = (id: string, rightful: readonly string[]) => state.isRevoked(id, rightful);
    const revocations = { isRevoked, isStale: () => isBehind };
    return { trustedRoots, now, revocations, maxLifetimeMs, clockSkewMs, subContract };
  }

  #verify(input: TokenInput, context: VerificationContext): VerifyResult {
    return verifyToken(this.#options.engine, input, context, { verified: this.#verified });
  }

  /** A look that fails leaves what is known as it is; its age says the rest. */
  async #look(): Promise<void> {
    try {
      await this.#options.look();
    } catch {
      // The reader logs it, and tries again.
    }
  }

  /** The genuine proof of a call that was denied for what comes after it. */
  #proofBehind(
    denial: DenialReason,
    token: SignedJSONToken | undefined,
    text: string,
    request: VerifyTokenRequest,
    now: number,
  ): AcceptedProof | undefined {
    const { proof } = request;
    if (!proof?.jwt || token === undefined || !isAfterProof(denial)) return undefined;
    const principal = (token.attenuations.at(-1) ?? token.authority).delegatee;
    const checked = this.#proofs.check(proof, { principal, token: text, now });
    return checked.ok ? checked.proof : undefined;
  }

  /** What has become of a token that was sound: revoked meanwhile, or by now nobody knows. */
  lastLook(token: SignedJSONToken, blocks: readonly Pick<Block, "revocationId">[]): DenialReason | undefined {
    const { clock, state } = this.#options;
    const isRevoked = blocks.some(({ revocationId }, level) => {
      return state.isRevoked(revocationId, rightfulRevokers(token, level));
    });
    if (isRevoked) return { type: "revoked" };
    if (state.isConflicting) return { type: "revocation_state_conflict" };
    return state.isStale(clock.now()) ? { type: "revocation_state_stale" } : undefined;
  }

  /** What waited for a chain that proves its right goes to the log, if this is one. */
  async #settle(
    token: SignedJSONToken,
    blocks: readonly Pick<Block, "revocationId">[],
    input: TokenInput,
    caller: string,
  ): Promise<void> {
    const { state, revocations } = this.#options;
    const waits = blocks.some(({ revocationId }, level) => {
      return state.isPending(revocationId, rightfulRevokers(token, level));
    });
    const chain = waits ? await this.provenChain(input) : undefined;
    if (chain?.ok) await revocations.settle(chain.blocks, caller);
  }

  #note(
    kind: "verify_token" | "verify_proof" | "open_session",
    caller: string,
    principal: string,
    denial: DenialReason | undefined,
    blocks: readonly Pick<Block, "revocationId">[],
  ): void {
    this.#options.audit.add({
      kind,
      caller,
      principal,
      decision: denial === undefined ? "allowed" : "denied",
      reason: denial === undefined ? "" : reasonText(denial),
      blocks: blocks.map(({ revocationId }) => revocationId),
    });
  }
}
