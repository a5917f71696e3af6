import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type VerifyTokenRequest,
  type VerifyTokenResponse,
  VerifyTokenResponseSchema,
} from "@depute/contracts/depute/tokens/v1/token_service_pb";
import type { HolderProof } from "@depute/contracts/depute/tokens/v1/token_verification_pb";
import type { Clock, Timers } from "@depute/core";
import {
  type AcceptedProof,
  type CryptoEngine,
  type DenialReason,
  revocationIds,
  rightfulRevokers,
  type SignedJSONToken,
  SJT_FORMAT,
  type TokenInput,
  type VerifyResult,
} from "@depute/dct";
import { chargeCpu, cpuQuotaOf, type Identity, identityOf, isCpuScarce } from "@depute/service";
import type { AuditLog } from "./audit-log.ts";
import type { BlockRecords, Notes } from "./block-notes.ts";
import type { Chains, Verification } from "./chains.ts";
import type { HolderProofs } from "./holder-proofs.ts";
import type { RevocationLog } from "./revocation-log.ts";
import type { RevocationState } from "./revocation-state.ts";
import { TOOL_CALLS } from "./rules/audit-record.ts";
import { bindingDenial, type CallPlace } from "./rules/bindings.ts";
import { decisionOf, type ProofResult, toDenialReason, toVerdict } from "./rules/denials.ts";
import {
  type Block,
  blocksOf,
  readTokenDocument,
  toAuthorizedScope,
  toSerialized,
  toTokenBlocks,
} from "./rules/documents.ts";
import { isAfterBudget, isAfterProof } from "./rules/order.ts";
import { budgetDenial, remaining } from "./rules/spend.ts";

/** The result of a verification after all recorded limits, with the ids of the token's single-use blocks. */
export interface LimitedDecision {
  readonly result: VerifyResult;
  readonly singleUse: readonly string[];
}

/**
 * Applies the recorded spend and reservations of each block (DelegateOS 10.1 step 6), and the bindings of an allowed
 * token. Reads the recorded limits only for a token that passed the steps before step 6. If a step after step 6 denied
 * the token, repeats the verification with the recorded spend. A denial in step 6 takes precedence.
 */
export async function applyBlockRecords(
  { engine, notes, chains }: { engine: CryptoEngine; notes: BlockRecords; chains: Chains },
  { result, verification }: { result: VerifyResult; verification: Verification },
  place: CallPlace,
): Promise<LimitedDecision> {
  if (!result.ok && !isAfterBudget(result.denial)) return { result, singleUse: [] };
  const token = result.ok ? result.token : readTokenDocument(verification.input);
  if (token === undefined) return { result, singleUse: [] };
  const ids = result.ok
    ? result.blocks.map(({ revocationId }) => revocationId)
    : revocationIds(engine, token);
  const blockRecords = await notes.read(ids);
  if (blockRecords === undefined) return { result, singleUse: [] };
  const { singleUse } = blockRecords;
  return { result: applyLimits(result, ids, blockRecords, { verification, chains, place }), singleUse };
}

function applyLimits(
  result: VerifyResult,
  ids: readonly string[],
  { counted, bindings }: Notes,
  { verification, chains, place }: { verification: Verification; chains: Chains; place: CallPlace },
): VerifyResult {
  const placeDenial = bindingDenial(bindings, place);
  const inPlace = (allowed: VerifyResult): VerifyResult => {
    return allowed.ok && placeDenial !== undefined ? { ok: false, denial: placeDenial } : allowed;
  };
  if (counted.every((amount) => amount === 0)) return inPlace(result);
  // The spend that the request states is added to the spend of the last block.
  const { spentMicrocents } = verification.context;
  const ownSpend = typeof spentMicrocents === "number" ? spentMicrocents : 0;
  const last = ids.length - 1;
  const total = counted.map((amount, i) =>
    Math.min(amount + (i === last ? ownSpend : 0), Number.MAX_SAFE_INTEGER),
  );
  if (!result.ok) {
    return chains.repeat(verification, {
      spentMicrocents: (id) => total[ids.indexOf(id)] ?? Number.MAX_SAFE_INTEGER,
    });
  }
  const levels = result.blocks.map(({ maxBudgetMicrocents }, i) => {
    return { maxBudgetMicrocents, counted: total[i] ?? Number.MAX_SAFE_INTEGER };
  });
  const denial = budgetDenial(levels);
  if (denial !== undefined) return { ok: false, denial };
  return inPlace({ ...result, scope: { ...result.scope, remainingBudgetMicrocents: remaining(levels) } });
}

/**
 * Returns the function that identifies callers of this service. The function runs the implementation of VerifyProof
 * directly, because a call of that RPC would itself need an identified caller.
 */
export function createIdentify(tokenVerifier: TokenVerifier): (context: HandlerContext) => Promise<Identity> {
  return (context) =>
    identityOf(context, async ({ proof, token }) =>
      toVerdict(await tokenVerifier.verifyProof(proof, token?.token, "")),
    );
}

/** Returns the principal that holds a token: the delegatee of its last block. */
function holderOf({ authority, attenuations }: SignedJSONToken): string {
  return (attenuations.at(-1) ?? authority).delegatee;
}

/**
 * Returns the values that a proof must match if the caller presents this token. If the token is unreadable, returns no
 * principal.
 */
function boundTo(text: string): { token: string; principal?: string } {
  const token = readTokenDocument({ token: text, format: SJT_FORMAT });
  return { token: text, ...(token !== undefined && { principal: holderOf(token) }) };
}

interface TokenVerifierOptions {
  engine: CryptoEngine;
  clock: Clock;
  timers: Timers;
  isProofRequired: boolean;
  chains: Chains;
  proofs: HolderProofs;
  state: RevocationState;
  revocations: RevocationLog;
  audit: AuditLog;
  notes: BlockRecords;
  /** Reads the revocation log now. Throws when it cannot be read. */
  look(): Promise<void>;
  /**
   * If this replica was suspended, reads the revocations again; undefined if no read is needed. See RevocationReader.
   */
  refresh(): Promise<boolean> | undefined;
}

/** Decides on presented tokens and holder proofs. */
export class TokenVerifier {
  readonly #options: TokenVerifierOptions;
  /** The end of the turn of the event loop in which a verification has run; undefined if none has. */
  #turn: Promise<void> | undefined;

  constructor(options: TokenVerifierOptions) {
    this.#options = options;
  }

  /**
   * Decides whether the bearer of a token may perform one action now (DelegateOS 10.1). Marks a genuine proof as used
   * even if the call is denied. Otherwise an observer of the denied call could present the proof later, when the token
   * is allowed. If a check before that of the proof denies the token, the proof is not marked. So forged tokens cannot
   * fill the memory of proofs. The mark may wait for the store. So the method then checks revocations again, in the
   * same turn of the event loop as the response. Once a revocation is acknowledged, no token with the revoked block is
   * allowed.
   *
   * @throws DeputeError LIMIT_EXCEEDED if the payer has used its quota of processor time, or the audit log has no room;
   * SHUTTING_DOWN
   */
  async verify(request: VerifyTokenRequest, caller: string): Promise<VerifyTokenResponse> {
    const { audit, chains, clock, engine, proofs, state } = this.#options;
    audit.assertRoom();
    const turn = this.#gather();
    if (turn !== undefined) await turn;
    const loading = proofs.load(request.proof?.jwt ?? "");
    if (loading !== undefined) await loading;
    const now = clock.now();
    const input = toSerialized(request.token);
    const presentation = proofs.presentationOf(request.proof);
    const isBearer = presentation.proof === undefined && !this.#options.isProofRequired;
    this.#assertCpu(request, isBearer, now);
    const minSequence = Number(request.minRevocationSequence);
    if (state.sequence < minSequence) await this.#look();
    const presentationContext = {
      holder: isBearer ? ("bearer" as const) : presentation,
      spentMicrocents: Number(request.spentMicrocents),
      requiredCapabilities: request.requiredCapabilities,
      ...(request.requested !== undefined && { request: request.requested }),
      ...(request.contractId !== "" && { contractId: request.contractId }),
    };
    const isBehind = state.sequence < minSequence;
    const decision = await chains.decide(input, presentationContext, { now, isBehind });
    const place = { target: request.proof?.target ?? "", tenant: request.tenant };
    const { result: blockRecords, singleUse } = await applyBlockRecords(this.#options, decision, place);
    const result = this.#withMore(blockRecords, decision.verification, request.alsoRequested);
    const token = result.ok ? result.token : readTokenDocument(input);
    const proof = result.ok
      ? result.proof
      : this.#proofBehind(result.denial, token, input.token, request, now);
    const useDenial = await this.#use(result, singleUse, proof, request.proof?.jwt ?? "");
    const blocks = result.ok ? result.blocks : token === undefined ? [] : blocksOf(engine, token);
    const denial = useDenial ?? (result.ok ? chains.finalDenial(result.token, blocks) : result.denial);
    if (denial?.type === "revoked" && token !== undefined) await this.#settle(token, blocks, input, caller);
    const principal = result.ok ? result.scope.holder : (proof?.principal ?? "");
    audit.add({
      ...{ kind: "verify_token", caller, principal, ...decisionOf(denial) },
      blocks: blocks.map(({ revocationId }) => revocationId),
      ...(request.toolCall !== "" && { resource: `${TOOL_CALLS}${request.toolCall}` }),
    });
    chargeCpu(principal);
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

  /**
   * Requires that the payer of the verification has processor time left: the proven caller or, without one, the token's
   * holder. Before it refuses a call for the holder's quota, the method checks the holder's proof. Only the holder may
   * learn that its quota is used up.
   */
  #assertCpu({ token: presented, proof }: VerifyTokenRequest, isBearer: boolean, now: number): void {
    cpuQuotaOf()?.assertRoom();
    if (!isCpuScarce()) return;
    const input = toSerialized(presented);
    const token = readTokenDocument(input);
    const holder = token === undefined ? "" : holderOf(token);
    const quota = cpuQuotaOf(holder);
    if (quota === undefined || quota.hasRoom) return;
    const isHolder =
      proof?.jwt && this.#options.proofs.check(proof, { principal: holder, token: input.token, now }).ok;
    if (isBearer || isHolder) quota.assertRoom();
  }

  /**
   * Marks the call's proof, and the single-use blocks of an allowed token, as used. Afterwards reads the revocations
   * again if this replica was suspended. Returns the denial if one of these steps fails; otherwise undefined.
   */
  async #use(
    result: VerifyResult,
    singleUse: readonly string[],
    proof: AcceptedProof | undefined,
    jwt: string,
  ): Promise<DenialReason | undefined> {
    const { proofs, refresh } = this.#options;
    const denial = proof === undefined ? undefined : await proofs.useUp(proof, "token", jwt);
    if (denial !== undefined) return denial;
    if (result.ok && singleUse.length > 0) {
      const usedDenial = await this.#useUp(result, singleUse);
      if (usedDenial !== undefined) return usedDenial;
    }
    const refreshing = refresh();
    return refreshing === undefined || (await refreshing) ? undefined : { type: "revocation_state_stale" };
  }

  /**
   * Marks the single-use blocks of an allowed token as used. Returns the denial if one was used before; otherwise
   * undefined.
   */
  async #useUp(
    { blocks }: Extract<VerifyResult, { ok: true }>,
    singleUse: readonly string[],
  ): Promise<DenialReason | undefined> {
    const once = blocks.filter(({ revocationId }) => singleUse.includes(revocationId));
    const isFresh = await this.#options.notes.useUp(once);
    return isFresh ? undefined : { type: "replayed_proof", detail: "the single-use token was used before" };
  }

  /**
   * Returns the principal of a holder proof, and marks the proof as used (RFC 9449). If the call presents a token, the
   * proof must name the token, and its holder must have signed the proof. The method does not verify the token itself.
   *
   * @throws DeputeError LIMIT_EXCEEDED if the principal has used its quota of processor time, or the audit log has no
   * room; SHUTTING_DOWN
   */
  async verifyProof(proof: HolderProof, token: string | undefined, caller: string): Promise<ProofResult> {
    const { audit, clock, proofs } = this.#options;
    audit.assertRoom();
    const loading = proofs.load(proof.jwt);
    if (loading !== undefined) await loading;
    const checked = proofs.check(proof, { now: clock.now(), ...(token !== undefined && boundTo(token)) });
    const principal = checked.ok ? checked.proof.principal : "";
    cpuQuotaOf(principal)?.assertRoom();
    chargeCpu(principal);
    const denial = checked.ok ? await proofs.useUp(checked.proof, "identity", proof.jwt) : checked.denial;
    audit.add({ kind: "verify_proof", caller, principal, ...decisionOf(denial), blocks: [] });
    return denial === undefined ? { ok: true, principal } : { ok: false, denial };
  }

  /** Returns the first denial among the further requested capabilities; without a denial, the given result. */
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
   * Lets the first verification of a turn of the event loop run at once: it returns undefined. All further ones wait
   * for the next turn. So a call that is alone does not wait, and concurrent tokens are verified one directly after the
   * other. The code of the signature check then stays in the CPU caches.
   */
  #gather(): Promise<void> | undefined {
    if (this.#turn !== undefined) return this.#turn;
    this.#turn = this.#options.timers.nextTurn().then(() => {
      this.#turn = undefined;
    });
    return undefined;
  }

  /** Reads new revocations. If the read fails, decisions use the known revocations until these are too old. */
  async #look(): Promise<void> {
    try {
      await this.#options.look();
    } catch {
      // The reader logs the failure, and tries again later.
    }
  }

  /**
   * Returns the proof of a denied call if the proof is valid, so that `#use` marks it as used. Returns undefined without
   * a valid proof, and if a check before that of the proof denied the call.
   */
  #proofBehind(
    denial: DenialReason,
    token: SignedJSONToken | undefined,
    text: string,
    request: VerifyTokenRequest,
    now: number,
  ): AcceptedProof | undefined {
    const { proof } = request;
    if (!proof?.jwt || token === undefined || !isAfterProof(denial)) return undefined;
    const checked = this.#options.proofs.check(proof, { principal: holderOf(token), token: text, now });
    return checked.ok ? checked.proof : undefined;
  }

  /** Logs those pending revocations whose revokers are rightful according to this chain. */
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
