import type { HolderProof } from "@depute/contracts/depute/tokens/v1/token_verification_pb";
import { encodeBase64Url } from "@depute/core";
import {
  type AcceptedProof,
  type CryptoEngine,
  checkProof,
  type DenialReason,
  type HolderSession,
  HolderSessions,
  type Presentation,
} from "@depute/dct";
import { countCpu } from "@depute/service";
import type { RevocationState } from "./revocation-state.ts";
import { isSameTarget } from "./rules/target.ts";
import type { UsedProofs } from "./seen-proofs.ts";
import type { SharedSessions } from "./shared-sessions.ts";
import type { ProofKind } from "./store/proof-rows.ts";

interface HolderProofsOptions {
  engine: CryptoEngine;
  state: RevocationState;
  seenProofs: UsedProofs;
  /** The holder sessions that all replicas share; undefined if this process alone holds its sessions. */
  sharedSessions?: SharedSessions | undefined;
}

/** The values that a proof must match, besides the method and address of its call. */
interface Bound {
  readonly now: number;
  readonly token?: string;
  readonly principal?: string;
}

/** Holder proofs (RFC 9449): single proofs, and the authentication codes of calls in a holder session. */
export class HolderProofs {
  readonly #options: HolderProofsOptions;
  readonly #sessions = new HolderSessions();

  constructor(options: HolderProofsOptions) {
    this.#options = options;
  }

  /**
   * Loads the holder session that a proof names. Call this method before the other methods. Returns undefined if no
   * load is needed. A process without replicas therefore never waits.
   */
  load(jwt: string): Promise<void> | undefined {
    const { sharedSessions } = this.#options;
    return jwt === "" ? undefined : sharedSessions?.load(jwt);
  }

  /**
   * Returns the call for which a proof was made, and the holder session that the proof names. An empty proof names no
   * session.
   */
  presentationOf(proof: HolderProof | undefined): Presentation {
    const { jwt = "", method: htm = "", target = "", argumentsDigest } = proof ?? {};
    const session = this.sessionOf(jwt);
    return {
      proof: jwt === "" ? undefined : jwt,
      htm,
      htu: target,
      isSameTarget,
      ...(argumentsDigest !== undefined &&
        argumentsDigest.length > 0 && { ard: encodeBase64Url(argumentsDigest) }),
      ...(session !== undefined && { session }),
    };
  }

  /** Checks that a proof is valid, without marking it as used. */
  check(proof: HolderProof, bound: Bound): ReturnType<typeof checkProof> {
    const { engine } = this.#options;
    const { proof: jwt, session, ...expected } = this.presentationOf(proof);
    const expectation = { ...expected, ...bound };
    return countCpu(() =>
      session === undefined ? checkProof(engine, jwt, expectation) : session.check(engine, jwt, expectation),
    );
  }

  /**
   * Marks a valid proof as used. Returns the denial; undefined if there is none. Reasons for a denial: the proof may
   * have been used before, its key is revoked, its holder session is closed, or the memory of used proofs is full. The
   * proofs of a holder session that one process holds are recorded in that session. All other proofs are recorded in
   * the store, so that a restarted process and other replicas refuse them too. A proof by a revoked key is denied,
   * because another party may have the key.
   *
   * @param jwt the text of the proof
   */
  async useUp(proof: AcceptedProof, kind: ProofKind, jwt: string): Promise<DenialReason | undefined> {
    if (this.#isRevoked(proof)) return keyRevoked;
    const { seenProofs, sharedSessions } = this.#options;
    const session = proof.counter === undefined ? undefined : this.sessionOf(jwt);
    if (proof.counter !== undefined) {
      if (session?.use(proof.counter) !== true) return { type: "replayed_proof" };
      if (sharedSessions === undefined) return undefined;
    }
    const use = await seenProofs.use(proof, kind, session?.terms.id);
    switch (use) {
      case "fresh":
        // Another call may have revoked the key while the store was written.
        return this.#isRevoked(proof) ? keyRevoked : undefined;
      case "seen":
        return { type: "replayed_proof" };
      case "unsure":
        return {
          type: "replayed_proof",
          detail: "made before a restart, so its use is unknown; make a new proof",
        };
      case "full":
        return { type: "internal_context", detail: "the memory of used proofs is full; try again later" };
      case "closed":
        sharedSessions?.forget(session?.terms.id ?? "");
        return { type: "invalid_proof", detail: "session closed" };
    }
  }

  /** Stores a holder session. Returns false if the maximum number of holder sessions is reached. */
  keep(session: HolderSession, now: number): boolean | Promise<boolean> {
    return this.#options.sharedSessions?.add(session, now) ?? this.#sessions.add(session, now);
  }

  /**
   * Returns the holder session that a proof's text names; undefined for a proof outside a holder session, and for an
   * unknown holder session.
   */
  sessionOf(jwt: string): HolderSession | undefined {
    const { sharedSessions } = this.#options;
    return sharedSessions === undefined ? this.#sessions.find(jwt) : sharedSessions.find(jwt);
  }

  async close(session: HolderSession): Promise<void> {
    const { sharedSessions } = this.#options;
    if (sharedSessions === undefined) this.#sessions.close(session.terms.id);
    else await sharedSessions.close(session.terms.id);
  }

  #isRevoked({ principal }: AcceptedProof): boolean {
    return this.#options.state.isRevokedKey(principal);
  }
}

const keyRevoked: DenialReason = { type: "invalid_proof", detail: "key revoked" };
