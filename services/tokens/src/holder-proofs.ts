import type { HolderProof } from "@depute/contracts/depute/tokens/v1/verification_pb";
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
  seen: SeenProofs;
}

/** What a proof is checked against besides the call that it names. */
interface Bound {
  readonly now: number;
  readonly token?: string;
  readonly principal?: string;
}

/** Proofs of possession: those that stand by themselves, and those of calls in a session (RFC 9449). */
export class HolderProofs {
  readonly #options: HolderProofsOptions;
  readonly #sessions = new HolderSessions();

  constructor(options: HolderProofsOptions) {
    this.#options = options;
  }

  /** What a proof has to be bound to, and the session that it belongs to; an empty one is none. */
  presentationOf(proof: HolderProof | undefined): Presentation {
    const { jwt = "", method: htm = "", target = "", argumentsDigest = "" } = proof ?? {};
    const session = this.#sessions.find(jwt);
    return {
      proof: jwt === "" ? undefined : jwt,
      htm,
      htu: target,
      isSameTarget,
      ...(argumentsDigest !== "" && { ard: argumentsDigest }),
      ...(session !== undefined && { session }),
    };
  }

  /** Whether a proof is genuine; nothing is used up. */
  check(proof: HolderProof, bound: Bound): ReturnType<typeof checkProof> {
    const { engine } = this.#options;
    const { proof: jwt, session, ...expected } = this.presentationOf(proof);
    const expectation = { ...expected, ...bound };
    return session === undefined
      ? checkProof(engine, jwt, expectation)
      : session.check(engine, jwt, expectation);
  }

  /**
   * Uses a genuine proof up; why not, when it cannot be. That of a session is in the session's own memory; any other is
   * remembered across restarts, see SeenProofs. A key that was revoked proves nothing: whoever has it may not be whom it
   * was made for.
   *
   * @param jwt the text of the proof
   */
  async useUp(proof: AcceptedProof, kind: ProofKind, jwt: string): Promise<DenialReason | undefined> {
    if (this.#isRevoked(proof)) return keyRevoked;
    if (proof.counter !== undefined) {
      const isFresh = this.#sessions.find(jwt)?.use(proof.counter) === true;
      return isFresh ? undefined : { type: "replayed_proof" };
    }
    switch (await this.#options.seen.use(proof, kind)) {
      case "fresh":
        // It may have been revoked while the proof waited for the store.
        return this.#isRevoked(proof) ? keyRevoked : undefined;
      case "seen":
        return { type: "replayed_proof" };
      case "unsure":
        return { type: "replayed_proof", detail: "made before a restart that may have forgotten it" };
      case "full":
        return { type: "internal_context", detail: "no room to remember the proof" };
    }
  }

  /** Keeps a session; false when there is no room. */
  keep(session: HolderSession, now: number): boolean {
    return this.#sessions.add(session, now);
  }

  /** The session that the text of a call's proof names. */
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
