import type { HolderProof } from "@depute/contracts/depute/tokens/v1/verification_pb";
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
import type { Judge } from "./judge.ts";
import type { ProofResult } from "./rules/denials.ts";
import { decisionOf } from "./rules/denials.ts";
import { isSameTarget } from "./rules/target.ts";

interface SessionDeskOptions {
  engine: CryptoEngine;
  clock: Clock;
  audit: AuditLog;
  chains: Chains;
  proofs: HolderProofs;
  judge: Judge;
  /** Signs the terms of sessions: the platform's root. */
  verifier: Keypair;
}

/** A session that was opened, or why none was. */
export type SessionResult = { ok: true; grant: SessionGrant } | { ok: false; denial: DenialReason };

/** Opens and closes the sessions of holders, who prove once that they hold a key and then show it by a code a call. */
export class SessionDesk {
  readonly #options: SessionDeskOptions;

  constructor(options: SessionDeskOptions) {
    this.#options = options;
  }

  /**
   * Opens a session for the holder of a key, and with a token for its holder alone. The proof is used up as VerifyToken
   * uses one up.
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
      verifier,
      ...(lifetimeMs !== undefined && { lifetimeMs }),
      ...(checked?.ok && { notAfter: checked.scope.expiresAt }),
    });
    const kind = token === undefined ? "identity" : "token";
    let denial = checked?.ok === false ? checked.denial : undefined;
    if (!opened.ok) denial ??= opened.denial;
    // A token's denial comes first, but only a proof that holds beside a chain that holds is used up.
    else if (denial === undefined) denial = await proofs.useUp(opened.proof, kind, jwt);
    if (denial === undefined && opened.ok && !proofs.keep(opened.session, now)) {
      denial = { type: "internal_context", detail: "no room for the session" };
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

  /** Closes the session that a proof of it names. */
  async close(proof: HolderProof, token: string | undefined): Promise<ProofResult> {
    const { judge, proofs } = this.#options;
    const session = proofs.sessionOf(proof.jwt);
    if (session === undefined) return { ok: true, principal: "" };
    const result = await judge.verifyProof(proof, token, "");
    if (result.ok) proofs.close(session);
    return result;
  }
}
