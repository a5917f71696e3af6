import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { holdsIntegrity, isEs256, judgeProof, type ProofHolder, type ProofRules } from "@depute/asp";
import type { Envelope } from "@depute/contracts/asp/v0/envelope_pb";
import { DenialReasonSchema, DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { SessionService } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { DeputeError, decodeBase64Url, ErrorReason } from "@depute/core";
import { nativeEngine } from "@depute/dct/native";
import { type Authority, callerDenied, callerOf, type Identity } from "@depute/service";
import type { SessionEngine } from "../engine/engine.ts";
import { verifyEs256 } from "./es256.ts";

/** An agent that a caller may turn out to be. */
export interface Candidate extends ProofHolder {
  /** Its URI. */
  readonly agentId: string;
  readonly principal: string;
}

/**
 * Who calls. The tokens service says so, but for a proof by ES256 (ASP "Agent registry" has such keys on cards), which no
 * principal has: it is held to the keys that the cards of those who may be meant publish.
 */
export class Callers {
  readonly #authority: Authority;
  readonly #engine: SessionEngine;

  constructor({ authority, engine }: { authority: Authority; engine: SessionEngine }) {
    this.#authority = authority;
    this.#engine = engine;
  }

  /**
   * @param candidates whose proofs are known here; asked only for a proof by ES256, and for a message without credentials
   * @param message what is sent: where credentials are required and none came, its proof and signature say who calls
   * @throws DeputeError as Authority.identify
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
      const judged = judgeProof(nativeEngine, proof, candidate, rules, this.#engine.clock.now());
      if (!judged.ok) {
        // Of several the candidate whose key it is says more than the others.
        const { claim = "" } = judged.refusal;
        if (claim !== "" && claim !== "jwk") detail = claim;
        continue;
      }
      if (await this.#engine.useProof(judged.proven)) {
        return { principal: candidate.principal, local: false };
      }
      [type, detail] = [DenialType.REPLAYED_PROOF, ""];
      break;
    }
    throw callerDenied(caller, create(DenialReasonSchema, { type, detail }));
  }

  /**
   * The sender of a message, by its proof and its signature. Nothing is used up yet: the engine judges both again, and takes
   * the proof with the message.
   *
   * @throws DeputeError UNAUTHENTICATED
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
      judgeProof(nativeEngine, dpopProof, sender, rules, this.#engine.clock.now()).ok &&
      holdsIntegrity(nativeEngine, message, key);
    if (isProven) return { principal: sender.principal, local: false };
    throw new DeputeError(
      ErrorReason.UNAUTHENTICATED,
      "credentials are required: sender.dpopProof and integrity.signature do not prove the sender, whose key has to be on its registered card",
    );
  }

  /**
   * What the proof in a message is judged by: it names the call as it reached the platform, or the RPC by its path alone,
   * on whatever wire it comes. undefined where the caller has brought a proof beside the message, which counts instead.
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
