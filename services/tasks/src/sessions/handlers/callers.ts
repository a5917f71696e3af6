import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { holdsIntegrity, isEs256, type ProofHolder, type ProofRules, verifyDpopProof } from "@depute/asp";
import type { Envelope } from "@depute/contracts/asp/v0/envelope_pb";
import { DenialReasonSchema, DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { SessionService } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { DeputeError, decodeBase64Url, ErrorReason } from "@depute/core";
import { nativeEngine } from "@depute/dct/native";
import { type Authority, callerDenied, callerOf, type Identity, provenIdentity } from "@depute/service";
import type { SessionEngine } from "../engine/engine.ts";
import { verifyEs256 } from "./es256.ts";

/** An agent that may be the caller. */
export interface Candidate extends ProofHolder {
  /** The agent's URI. */
  readonly agentId: string;
  readonly principal: string;
}

/**
 * Identifies callers through the tokens service. An ES256 proof names no principal, because its key may be on an
 * agent's card (ASP "Agent registry"). So this class verifies such a proof with the keys on the candidates' cards.
 */
export class Callers {
  readonly #authority: Authority;
  readonly #engine: SessionEngine;

  constructor({ authority, engine }: { authority: Authority; engine: SessionEngine }) {
    this.#authority = authority;
    this.#engine = engine;
  }

  /**
   * Identifies the caller of an RPC.
   *
   * @param candidates the agents that may be the caller; read only for an ES256 proof, or for a message without
   * credentials
   * @param message identifies the caller by its proof and signature, if credentials are required and absent
   * @throws DeputeError the errors of Authority.identify and of `candidates`; LIMIT_EXCEEDED if a quota of the caller
   * is used up
   */
  async identify(
    context: HandlerContext,
    candidates: () => Promise<readonly Candidate[]>,
    message?: Envelope,
  ): Promise<Identity> {
    const caller = callerOf(context);
    if (caller.kind === "message" && message !== undefined) {
      return this.#identifySender(context, await candidates(), message);
    }
    const { proof, token, htm, htu } = caller;
    if (proof === undefined || token !== undefined || !isEs256(proof)) {
      return this.#authority.identify(context);
    }
    const rules: ProofRules = { targets: [{ htm, htu }], verifyEs256 };
    let [type, detail]: [DenialType, string] = [DenialType.INVALID_PROOF, "jwk"];
    for (const candidate of await candidates()) {
      const verdict = verifyDpopProof(nativeEngine, proof, candidate, rules, this.#engine.clock.now());
      if (!verdict.ok) {
        // If a candidate's key matches and another claim is wrong, the denial names that claim. That claim helps the
        // caller more than the key mismatch of another candidate.
        const { claim = "" } = verdict.refusal;
        if (claim !== "" && claim !== "jwk") detail = claim;
        continue;
      }
      if (await this.#engine.useProof(verdict.proven)) {
        return provenIdentity(context, candidate.principal);
      }
      [type, detail] = [DenialType.REPLAYED_PROOF, ""];
      break;
    }
    throw callerDenied(caller, create(DenialReasonSchema, { type, detail }));
  }

  /**
   * Identifies the sender of a message by its proof and signature. Does not mark the proof as used. The session engine
   * marks it in the message's transaction, after a second check of proof and signature.
   *
   * @throws DeputeError UNAUTHENTICATED, LIMIT_EXCEEDED (a quota of the sender is used up), CALLER_NOT_ALLOWED (the
   * sender has no role that the method requires)
   */
  #identifySender(context: HandlerContext, candidates: readonly Candidate[], message: Envelope): Identity {
    const sender = candidates.find(({ agentId }) => agentId === message.sender?.agentId);
    const rules = this.messageProof(context);
    const key = decodeBase64Url(sender?.key ?? "");
    const dpopProof = message.sender?.dpopProof ?? "";
    const isProven =
      sender !== undefined &&
      rules !== undefined &&
      key !== undefined &&
      verifyDpopProof(nativeEngine, dpopProof, sender, rules, this.#engine.clock.now()).ok &&
      holdsIntegrity(nativeEngine, message, key);
    if (isProven) return provenIdentity(context, sender.principal);
    throw new DeputeError(
      ErrorReason.UNAUTHENTICATED,
      "credentials are required: sender.dpopProof and integrity.signature do not prove the sender, whose key must be on its registered card",
    );
  }

  /**
   * Returns the rules for the proof in a message. Returns undefined if the caller sent a proof outside the message;
   * only that proof then counts. The proof must name the URL of the call, or the path of the RPC on any wire.
   */
  messageProof(context: HandlerContext): ProofRules | undefined {
    const { kind, proof, htm, htu } = callerOf(context);
    if (kind === "bound" && proof !== undefined) return undefined;
    const path = `/${SessionService.typeName}/${context.method.name}`;
    return {
      targets: [
        { htm, htu },
        { htm: "POST", htu: path },
      ],
      verifyEs256,
    };
  }
}
