import { create } from "@bufbuild/protobuf";
import {
  type VerifyTokenRequest,
  type VerifyTokenResponse,
  VerifyTokenResponseSchema,
} from "@depute/contracts/depute/tokens/v1/token_service_pb";
import type { HolderProof } from "@depute/contracts/depute/tokens/v1/verification_pb";
import { type Clock, nextTurn } from "@depute/core";
import {
  type AcceptedProof,
  type CryptoEngine,
  type DenialReason,
  rightfulRevokers,
  type SignedJSONToken,
  type TokenInput,
  type VerifyResult,
} from "@depute/dct";
import type { AuditLog } from "./audit-log.ts";
import { withNotes } from "./block-limits.ts";
import type { BlockNotes } from "./block-notes.ts";
import type { Chains, Verification } from "./chains.ts";
import type { HolderProofs } from "./holder-proofs.ts";
import type { RevocationLog } from "./revocation-log.ts";
import type { RevocationState } from "./revocation-state.ts";
import { type Block, blocksOf, parsed, toAuthorizedScope, toTokenBlocks } from "./rules/blocks.ts";
import { decisionOf, type ProofResult, toDenialReason } from "./rules/denials.ts";
import { toSerialized } from "./rules/documents.ts";
import { isAfterProof } from "./rules/order.ts";

interface JudgeOptions {
  engine: CryptoEngine;
  clock: Clock;
  isProofRequired: boolean;
  chains: Chains;
  proofs: HolderProofs;
  state: RevocationState;
  revocations: RevocationLog;
  audit: AuditLog;
  notes: BlockNotes;
  /** Looks at the revocation log now. Throws when it cannot be read. */
  look(): Promise<void>;
}

/** Decides what is presented: a token with a proof of its holder, or a proof of who calls. */
export class Judge {
  readonly #options: JudgeOptions;
  #turn: Promise<void> | undefined;

  constructor(options: JudgeOptions) {
    this.#options = options;
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
    const { audit, chains, clock, engine, proofs, state } = this.#options;
    audit.assertRoom();
    await this.#gather();
    const now = clock.now();
    const input = toSerialized(request.token);
    const presentation = proofs.presentationOf(request.proof);
    const isBearer = presentation.proof === undefined && !this.#options.isProofRequired;
    const minSequence = Number(request.minRevocationSequence);
    if (state.sequence < minSequence) await this.#look();
    const asked = {
      holder: isBearer ? ("bearer" as const) : presentation,
      spentMicrocents: Number(request.spentMicrocents),
      requiredCapabilities: request.requiredCapabilities,
      ...(request.requested !== undefined && { request: request.requested }),
      ...(request.contractId !== "" && { contractId: request.contractId }),
    };
    const isBehind = state.sequence < minSequence;
    const decided = await chains.decide(input, asked, { now, isBehind });
    const place = { target: request.proof?.target ?? "", tenant: request.tenant };
    const { result: noted, singleUse } = await withNotes(this.#options, decided, place);
    const result = this.#withMore(noted, decided.verification, request.alsoRequested);
    const token = result.ok ? result.token : parsed(input);
    const proof = result.ok
      ? result.proof
      : this.#proofBehind(result.denial, token, input.token, request, now);
    let used = proof === undefined ? undefined : await proofs.useUp(proof, "token", request.proof?.jwt ?? "");
    if (used === undefined && result.ok && singleUse.length > 0) used = await this.#useUp(result, singleUse);
    const blocks = result.ok ? result.blocks : token === undefined ? [] : blocksOf(engine, token);
    const denial = used ?? (result.ok ? chains.lastLook(result.token, blocks) : result.denial);
    if (denial?.type === "revoked" && token !== undefined) await this.#settle(token, blocks, input, caller);
    const principal = result.ok ? result.scope.holder : (proof?.principal ?? "");
    audit.add({
      ...{ kind: "verify_token", caller, principal, ...decisionOf(denial) },
      blocks: blocks.map(({ revocationId }) => revocationId),
    });
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

  /** Uses those blocks of an allowed token up that count once. */
  async #useUp(
    { blocks }: Extract<VerifyResult, { ok: true }>,
    singleUse: readonly string[],
  ): Promise<DenialReason | undefined> {
    const once = blocks.filter(({ revocationId }) => singleUse.includes(revocationId));
    const isFresh = await this.#options.notes.useUp(once);
    return isFresh ? undefined : { type: "replayed_proof", detail: "the token is for one use" };
  }

  /** Whose key made a holder proof (RFC 9449); uses it up. With a token the proof has to name that token. */
  async verifyProof(proof: HolderProof, token: string | undefined, caller: string): Promise<ProofResult> {
    const { audit, clock, proofs } = this.#options;
    audit.assertRoom();
    const checked = proofs.check(proof, { now: clock.now(), ...(token !== undefined && { token }) });
    const denial = checked.ok ? await proofs.useUp(checked.proof, "identity", proof.jwt) : checked.denial;
    const principal = checked.ok ? checked.proof.principal : "";
    audit.add({ kind: "verify_proof", caller, principal, ...decisionOf(denial), blocks: [] });
    return denial === undefined ? { ok: true, principal } : { ok: false, denial };
  }

  /** Whether a token that is allowed what was asked for is allowed the rest, too. */
  #withMore(
    result: VerifyResult,
    verification: Verification,
    more: readonly VerifyTokenRequest["alsoRequested"][number][],
  ): VerifyResult {
    if (!result.ok) return result;
    const holder = verification.context.holder === "bearer" ? "bearer" : "proved";
    for (const request of more) {
      const one = this.#options.chains.repeat(verification, { request, holder });
      if (!one.ok) return one;
    }
    return result;
  }

  /**
   * Waits for the end of the turn, so that what came in together is verified together: the signature check finds its
   * code and tables at hand then, which is a tenth of the work.
   */
  #gather(): Promise<void> {
    this.#turn ??= nextTurn().then(() => {
      this.#turn = undefined;
    });
    return this.#turn;
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
    const checked = this.#options.proofs.check(proof, { principal, token: text, now });
    return checked.ok ? checked.proof : undefined;
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
    const chain = waits ? await this.#options.chains.proven(input) : undefined;
    if (chain?.ok) await revocations.settle(chain.blocks, caller);
  }
}
