import type { JsonObject } from "@bufbuild/protobuf";
import { seal } from "@depute/asp";
import { type Envelope, EnvelopeSchema } from "@depute/contracts/asp/v0/envelope_pb";
import { newId } from "@depute/core";
import { createProof, generateKeypair, type Keypair } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import { decode, encode } from "@depute/wire";

const NO_HASH = `sha256:${"0".repeat(64)}`;
/** A placeholder until `seal` sets the signature. */
const UNSIGNED = `ed25519:${"0".repeat(128)}`;

/** The members of a session's document (`GET /v1/asp/sessions/{id}`) that a party needs. */
interface SessionView {
  readonly sessionId: string;
  readonly state: string;
  readonly lastHash: string;
  readonly participants: readonly {
    agentId: string;
    nextSequenceNumber: number | string;
    trustScore: number;
  }[];
}

/** One side of a session: an agent with its own key, which uses ASP over plain HTTP. */
export class Party {
  readonly uri: string;
  readonly #url: string;
  readonly #key: Keypair = generateKeypair(nativeEngine);
  #score = 0;

  /** @param url the platform's address @param uri `agent://domain/unit/name` */
  constructor(url: string, uri: string) {
    this.#url = url;
    this.uri = uri;
  }

  /** The body with which a party shows its key to the other party. */
  get identity(): JsonObject {
    const { uri: agentId } = this;
    return { informType: "identity", data: { agentId, name: this.#name, signingPublicKey: this.#jwk } };
  }

  /** Registers the agent with its ASP card. Reads the agent's score, which its messages must state. */
  async register(): Promise<void> {
    await this.#rpc("AgentService/RegisterAgent", {
      requestId: newId(),
      agent: {
        id: this.#name,
        version: "1.0.0",
        principal: this.#key.principal.id,
        card: { agentId: this.uri, name: this.#name, signingPublicKey: this.#jwk },
      },
    });
    const { overall } = (await this.#rpc("TrustService/GetTrust", { agentId: this.#name })) as {
      overall?: { score?: number };
    };
    this.#score = Math.round((overall?.score ?? 0) * 10) / 10;
  }

  /**
   * Opens a session by an invitation.
   *
   * @returns the session's id
   */
  async invite(recipient: Party, body: JsonObject): Promise<string> {
    const sessionId = newId();
    const invitation = this.#sealed({ sessionId, performative: "PROPOSE", body, recipient: recipient.uri });
    await this.#post("/v1/asp/sessions", encode(EnvelopeSchema, invitation));
    return sessionId;
  }

  /**
   * Sends a message in a session.
   *
   * @returns the session's state after the message
   */
  async say(sessionId: string, performative: string, body: JsonObject, recipient?: Party): Promise<string> {
    const session = await this.#session(sessionId);
    const envelope = this.#sealed({ sessionId, performative, body, recipient: recipient?.uri, session });
    await this.#post(`/v1/asp/sessions/${sessionId}/messages`, encode(EnvelopeSchema, envelope));
    return (await this.#session(sessionId)).state;
  }

  get #name(): string {
    return this.uri.slice(this.uri.lastIndexOf("/") + 1);
  }

  get #jwk() {
    return { kty: "OKP", crv: "Ed25519", x: this.#key.principal.id };
  }

  async #session(id: string): Promise<SessionView> {
    return (await documentOf(await fetch(`${this.#url}/v1/asp/sessions/${id}`))) as unknown as SessionView;
  }

  #sealed(message: {
    sessionId: string;
    performative: string;
    body: JsonObject;
    recipient?: string | undefined;
    session?: SessionView;
  }): Envelope {
    const { sessionId, performative, body, recipient, session } = message;
    const me = session?.participants.find(({ agentId }) => agentId === this.uri);
    const method = session === undefined ? "CreateSession" : "AppendMessage";
    const decoded = decode(EnvelopeSchema, {
      version: "asp/0.1",
      messageId: newId(),
      sessionId,
      sequenceNumber: Number(me?.nextSequenceNumber ?? 0),
      timestamp: new Date().toISOString(),
      sender: {
        agentId: this.uri,
        orgId: "org_demo",
        trustScore: me?.trustScore ?? this.#score,
        dpopProof: createProof(nativeEngine, this.#key, {
          htm: "POST",
          htu: `/depute.tasks.v1.SessionService/${method}`,
        }),
      },
      ...(recipient === undefined ? {} : { recipient }),
      performative,
      content: { mimeType: "application/asp+json", body },
      integrity: { hash: NO_HASH, previousHash: session?.lastHash ?? NO_HASH, signature: UNSIGNED },
    });
    if (!decoded.ok) throw new Error(`${decoded.error.path}: ${decoded.error.message}`);
    return seal(nativeEngine, decoded.message, this.#key.privateKey);
  }

  #rpc(method: string, request: JsonObject): Promise<JsonObject> {
    return this.#post(`/depute.registry.v1.${method}`, request);
  }

  async #post(path: string, document: unknown): Promise<JsonObject> {
    const headers = {
      "content-type": path.startsWith("/v1/asp") ? "application/asp+json" : "application/json",
    };
    const body = JSON.stringify(document);
    return documentOf(await fetch(`${this.#url}${path}`, { method: "POST", headers, body }));
  }
}

/**
 * Reads the document in the platform's answer.
 *
 * @throws Error with the answer if the platform refused the call
 */
export async function documentOf(response: Response): Promise<JsonObject> {
  const text = await response.text();
  if (!response.ok) throw new Error(`${new URL(response.url).pathname}: ${response.status} ${text}`);
  return JSON.parse(text) as JsonObject;
}
