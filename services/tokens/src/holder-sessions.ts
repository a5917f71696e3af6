import type { HolderProof } from "@depute/contracts/depute/tokens/v1/token_verification_pb";
import type { Clock } from "@depute/core";
import {
  type CryptoEngine,
  type DenialReason,
  type Keypair,
  openSession,
  type SessionGrant,
} from "@depute/dct";
import type { AuditLog } from "./audit-log.ts";
import type { Chains } from "./chains.ts";
import type { HolderProofs } from "./holder-proofs.ts";
import type { ProofResult } from "./rules/denials.ts";
import { decisionOf } from "./rules/denials.ts";
import { isSameTarget } from "./rules/target.ts";
import type { TokenVerifier } from "./token-verifier.ts";

interface HolderSessionsOptions {
  engine: CryptoEngine;
  clock: Clock;
  audit: AuditLog;
  chains: Chains;
  proofs: HolderProofs;
  tokenVerifier: TokenVerifier;
  /** Returns the platform's root key, which signs the terms of holder sessions. */
  verifier: () => Keypair;
}

/** The opened holder session, or the reason why the service did not open it. */
export type SessionResult = { ok: true; grant: SessionGrant } | { ok: false; denial: DenialReason };

/**
 * Opens and closes holder sessions. The holder proves its key once, when the holder session opens. The holder then
 * authenticates each call by a code.
 */
export class HolderSessions {
  readonly #options: HolderSessionsOptions;

  constructor(options: HolderSessionsOptions) {
    this.#options = options;
  }

  /**
   * Opens a holder session for the holder of a key. If the call presents a token, only the token's holder may open the
   * session. Marks the proof as used.
   */
  async open(
    { jwt, method: htm, target: htu }: HolderProof,
    token: string | undefined,
    { audience, lifetimeMs }: { audience: string; lifetimeMs?: number },
  ): Promise<SessionResult> {
    const { audit, chains, clock, engine, proofs, verifier } = this.#options;
    audit.assertRoom();
    const now = clock.now();
    const checked = token === undefined ? undefined : await chains.check(token);
    const expected = {
      ...{ htm, htu, isSameTarget, opens: audience, now },
      ...(token !== undefined && { token }),
      ...(checked?.ok && { principal: checked.scope.holder }),
    };
    const opened = openSession(engine, jwt === "" ? undefined : jwt, expected, {
      verifier: verifier(),
      ...(lifetimeMs !== undefined && { lifetimeMs }),
      ...(checked?.ok && { notAfter: checked.scope.expiresAt }),
    });
    const kind = token === undefined ? "identity" : "token";
    let denial = checked?.ok === false ? checked.denial : undefined;
    if (!opened.ok) denial ??= opened.denial;
    // If the token is denied, its denial is the result. A proof is marked as used only if the proof and the chain are
    // valid.
    else if (denial === undefined) denial = await proofs.useUp(opened.proof, kind, jwt);
    if (denial === undefined && opened.ok && !(await proofs.keep(opened.session, now))) {
      denial = { type: "internal_context", detail: "the limit of sessions is reached" };
    }
    const blocks = checked?.ok ? checked.blocks : [];
    audit.add({
      ...{ kind: "open_session", caller: "", principal: opened.ok ? opened.proof.principal : "" },
      ...decisionOf(denial),
      blocks: blocks.map(({ revocationId }) => revocationId),
    });
    if (denial !== undefined || !opened.ok)
      return { ok: false, denial: denial ?? { type: "internal_context" } };
    return { ok: true, grant: opened.grant };
  }

  /**
   * Closes the holder session that a proof names. Returns success without a principal if the holder session is unknown.
   */
  async close(proof: HolderProof, token: string | undefined): Promise<ProofResult> {
    const { tokenVerifier, proofs } = this.#options;
    await proofs.load(proof.jwt);
    const session = proofs.sessionOf(proof.jwt);
    if (session === undefined) return { ok: true, principal: "" };
    const result = await tokenVerifier.verifyProof(proof, token, "");
    if (result.ok) await proofs.close(session);
    return result;
  }
}
