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
import type { RevocationState } from "./revocation-state.ts";
import { isSameTarget } from "./rules/target.ts";
import type { SeenProofs } from "./seen-proofs.ts";
import type { ProofKind } from "./store/proof-rows.ts";

interface HolderProofsOptions {
  engine: CryptoEngine;
  state: RevocationState;
  seenProofs: SeenProofs;
}

/** The values that a proof must match, in addition to the method and address of its call. */
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

  /** Returns the presentation to which a proof is bound, with its holder session. An empty proof has none. */
  presentationOf(proof: HolderProof | undefined): Presentation {
    const { jwt = "", method: htm = "", target = "", argumentsDigest } = proof ?? {};
    const session = this.#sessions.find(jwt);
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
    return session === undefined
      ? checkProof(engine, jwt, expectation)
      : session.check(engine, jwt, expectation);
  }

  /**
   * Marks a valid proof as used. Returns the denial if the proof was used before or its key is revoked. A
   * holder session records the proofs of its own calls. SeenProofs records all other proofs, across restarts. A
   * revoked key proves nothing, because another party may have the key.
   *
   * @param jwt the text of the proof
   */
  async useUp(proof: AcceptedProof, kind: ProofKind, jwt: string): Promise<DenialReason | undefined> {
    if (this.#isRevoked(proof)) return keyRevoked;
    if (proof.counter !== undefined) {
      const isFresh = this.#sessions.find(jwt)?.use(proof.counter) === true;
      return isFresh ? undefined : { type: "replayed_proof" };
    }
    switch (await this.#options.seenProofs.use(proof, kind)) {
      case "fresh":
        // The key may have been revoked during the write to the store.
        return this.#isRevoked(proof) ? keyRevoked : undefined;
      case "seen":
        return { type: "replayed_proof" };
      case "unsure":
        return { type: "replayed_proof", detail: "made before a restart that may have forgotten it" };
      case "full":
        return { type: "internal_context", detail: "no room to remember the proof" };
    }
  }

  /** Stores a holder session; false if the maximum number of sessions is reached. */
  keep(session: HolderSession, now: number): boolean {
    return this.#sessions.add(session, now);
  }

  /** Finds the holder session that a proof's text names. */
  sessionOf(jwt: string): HolderSession | undefined {
    return this.#sessions.find(jwt);
  }

  close(session: HolderSession): void {
    this.#sessions.close(session.terms.id);
  }

  #isRevoked({ principal }: AcceptedProof): boolean {
    return this.#options.state.isRevokedKey(principal);
  }
}

const keyRevoked: DenialReason = { type: "invalid_proof", detail: "key revoked" };
