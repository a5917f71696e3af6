import { create, type JsonObject } from "@bufbuild/protobuf";
import { FIRST_PREVIOUS_HASH, seal } from "@depute/asp";
import { type Envelope, EnvelopeSchema, type Performative } from "@depute/contracts/asp/v0/envelope_pb";
import { encodeBase64Url, formatTime, newId } from "@depute/core";
import { createProof } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import { decode } from "@depute/wire";

export interface Party {
  readonly id: string;
  readonly uri: string;
  readonly seed: Uint8Array;
  readonly key: string;
}

function party(id: string): Party {
  const seed = nativeEngine.sha256(new TextEncoder().encode(id));
  const key = encodeBase64Url(nativeEngine.publicKey(seed));
  return { id, uri: `agent://${id}.bench.example/desk/${id}`, seed, key };
}

export const ALPHA = party("alpha");
export const BETA = party("beta");

/** Makes the signed messages of one session. Each message follows the previous one. */
export class Chain {
  readonly sessionId = newId();
  readonly #score: number;
  readonly #sequences = new Map([
    [ALPHA, 0],
    [BETA, 0],
  ]);
  #head = FIRST_PREVIOUS_HASH;

  /** @param score the score that both parties state of themselves */
  constructor(score: number) {
    this.#score = score;
  }

  /** Returns the messages up to the introductions. The first message opens the session. */
  opening(): Envelope[] {
    const invitation = { proposalId: "inv", type: "session-invitation", subject: "bench" };
    return [
      this.next(ALPHA, "PROPOSE", invitation, BETA.uri),
      this.next(BETA, "ACCEPT", { referenceId: "inv" }),
      ...[ALPHA, BETA].map((one) =>
        this.next(one, "INFORM", { informType: "identity", data: { agentId: one.uri, name: one.id } }),
      ),
    ];
  }

  /**
   * Returns the messages between the introductions and the close. Each states a fact as large as the one in the
   * specification's example.
   */
  talk(count: number): Envelope[] {
    const data = {
      product: "Platform Enterprise",
      seats: 100,
      pricePerSeatPerMonth: 50,
      contractLengthMonths: 12,
    };
    return Array.from({ length: count }, (_, i) =>
      this.next(i % 2 === 0 ? ALPHA : BETA, "INFORM", { informType: "fact", subject: "Licensing", data }),
    );
  }

  #proof({ seed, key }: Party): string {
    const method = this.#head === FIRST_PREVIOUS_HASH ? "CreateSession" : "AppendMessage";
    const claims = { htm: "POST", htu: `/depute.tasks.v1.SessionService/${method}` };
    return createProof(nativeEngine, { principal: { id: key }, privateKey: seed }, claims);
  }

  next(
    sender: Party,
    performative: keyof typeof Performative,
    body: JsonObject,
    recipient?: string,
  ): Envelope {
    const sequenceNumber = this.#sequences.get(sender) ?? 0;
    const decoded = decode(EnvelopeSchema, {
      version: "asp/0.1",
      messageId: newId(),
      sessionId: this.sessionId,
      sequenceNumber,
      timestamp: formatTime(Date.now()),
      sender: {
        agentId: sender.uri,
        orgId: "bench",
        trustScore: this.#score,
        dpopProof: this.#proof(sender),
      },
      ...(recipient === undefined ? {} : { recipient }),
      performative,
      content: { mimeType: "application/asp+json", body },
      integrity: {
        hash: FIRST_PREVIOUS_HASH,
        previousHash: this.#head,
        signature: `ed25519:${"0".repeat(128)}`,
      },
    });
    if (!decoded.ok) throw new Error(decoded.error.message);
    const envelope = seal(nativeEngine, create(EnvelopeSchema, decoded.message), sender.seed);
    this.#sequences.set(sender, sequenceNumber + 1);
    this.#head = envelope.integrity?.hash ?? "";
    return envelope;
  }
}
