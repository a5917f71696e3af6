import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  randomBytes,
  randomUUID,
  sign,
} from "node:crypto";

/**
 * The JSON that `Stranger` exchanges. `Stranger` is an agent that is written only from the documents, without code
 * of the platform. It uses plain fetch, and SHA-256 and Ed25519 of Node.js.
 */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Document = { [name: string]: Json };

/** A response of the platform. */
export interface Answer {
  readonly status: number;
  readonly body: Document;
}

/**
 * Writes JSON in the form of RFC 8785. Node.js already formats numbers and strings in that form, and sorts names by
 * UTF-16 code units.
 */
export function canonical(value: Json): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const members = Object.keys(value)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonical(value[name] as Json)}`);
  return `{${members.join(",")}}`;
}

/** Returns a new UUIDv7. (RFC 9562 5.7) */
export function uuid7(): string {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(Date.now(), 0, 6);
  bytes[6] = 0x70 | ((bytes[6] ?? 0) & 0x0f);
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f);
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");
const ZEROS = "0".repeat(64);

export class Stranger {
  /** The agent's id in the registry. */
  readonly id: string;
  readonly uri: string;
  /** The public key in base64url. */
  readonly x: string;
  /** Whether calls without a message also carry a proof. A platform that requires credentials needs such proofs. */
  proves = false;
  readonly #key: KeyObject;
  readonly #url: string;

  /** @param seed the source of the key; agents with the same seed are one principal */
  constructor(url: string, id: string, uri: string, seed: string = randomUUID()) {
    this.#url = url;
    this.id = id;
    this.uri = uri;
    const secret = createHash("sha256").update(seed).digest();
    this.#key = createPrivateKey({ key: Buffer.concat([PKCS8, secret]), format: "der", type: "pkcs8" });
    this.x = String(createPublicKey(this.#key).export({ format: "jwk" }).x);
  }

  get jwk(): Document {
    return { kty: "OKP", crv: "Ed25519", x: this.x };
  }

  /** Calls an RPC in Connect's JSON form; if `isProved`, with a proof of this agent's key. */
  async call(method: string, body: Document, isProved = this.proves): Promise<Answer> {
    const address = `${this.#url}/${method}`;
    return answer(address, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(isProved ? { dpop: this.proof("POST", address) } : {}),
      },
      body: JSON.stringify(body),
    });
  }

  /**
   * Registers the agent.
   *
   * @param more members that replace the record's usual members
   */
  register(more: Document = {}): Promise<Answer> {
    const card: Document = {
      agentId: this.uri,
      name: this.id,
      capabilities: { values: ["walk"] },
      signingPublicKey: this.jwk,
    };
    const agent = { id: this.id, principal: this.x, card, ...more };
    return this.call("depute.registry.v1.AgentService/RegisterAgent", { requestId: randomUUID(), agent });
  }

  /** Makes a DPoP proof. (RFC 9449 4.2) */
  proof(htm: string, htu: string): string {
    const part = (value: Json) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const claims = { htm, htu, jti: randomUUID(), iat: Math.floor(Date.now() / 1000) };
    const signed = `${part({ typ: "dpop+jwt", alg: "EdDSA", jwk: this.jwk })}.${part(claims)}`;
    return `${signed}.${sign(null, Buffer.from(signed), this.#key).toString("base64url")}`;
  }

  get(path: string): Promise<Answer> {
    const address = `${this.#url}${path}`;
    return answer(address, { headers: this.proves ? { dpop: this.proof("GET", address) } : {} });
  }

  /** Returns the document of a session in its current state. */
  async session(sessionId: string): Promise<Document> {
    return (await this.get(`/v1/asp/sessions/${sessionId}`)).body;
  }

  /**
   * Makes a signed message that follows the head of a session. Given only a session's id, the method makes the
   * session's first message.
   */
  message(session: Document | string, performative: string, body: Document, more: Document = {}): Document {
    const known = typeof session === "string" ? undefined : session;
    const sessionId = typeof session === "string" ? session : String(session.sessionId);
    const participants = (known?.participants ?? []) as Document[];
    const me = participants.find(({ agentId }) => agentId === this.uri);
    const path = known === undefined ? "/v1/asp/sessions" : `/v1/asp/sessions/${sessionId}/messages`;
    const document: Document = {
      version: "asp/0.1",
      messageId: uuid7(),
      sessionId,
      sequenceNumber: me?.nextSequenceNumber ?? 0,
      timestamp: new Date().toISOString(),
      sender: {
        agentId: this.uri,
        orgId: `org_${this.id}`,
        trustScore: me?.trustScore ?? 0,
        dpopProof: this.proof("POST", `${this.#url}${path}`),
      },
      performative,
      content: { mimeType: "application/asp+json", body },
      ...more,
    };
    const previousHash = known?.lastHash ?? `sha256:${ZEROS}`;
    const hashed = canonical({ ...document, integrity: { previousHash } });
    const hash = createHash("sha256").update(hashed).digest();
    const signature = sign(null, Buffer.concat([Buffer.from("asp/0.1\n"), hash]), this.#key);
    return {
      ...document,
      integrity: {
        hash: `sha256:${hash.toString("hex")}`,
        previousHash,
        signature: `ed25519:${signature.toString("hex")}`,
      },
    };
  }

  /** Posts a protocol document. */
  post(path: string, document: Document, headers: Record<string, string> = {}): Promise<Answer> {
    return answer(`${this.#url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/asp+json", ...headers },
      body: JSON.stringify(document),
    });
  }

  /** Invites an agent to a new session. */
  invite(recipient: string): Promise<Answer> {
    const body = { proposalId: "inv", type: "session-invitation", subject: "A walk" };
    return this.post("/v1/asp/sessions", this.message(uuid7(), "PROPOSE", body, { recipient }));
  }

  /** Sends a message after the session's current head. */
  async say(sessionId: string, performative: string, body: Document, more: Document = {}): Promise<Answer> {
    const message = this.message(await this.session(sessionId), performative, body, more);
    return this.post(`/v1/asp/sessions/${sessionId}/messages`, message);
  }

  introduce(sessionId: string): Promise<Answer> {
    const data = { agentId: this.uri, name: this.id, signingPublicKey: this.jwk };
    return this.say(sessionId, "INFORM", { informType: "identity", data });
  }
}

async function answer(address: string, init: RequestInit): Promise<Answer> {
  const response = await fetch(address, init);
  return { status: response.status, body: (await response.json()) as Document };
}

/** Returns the parts of a refusal by the ASP wire or by Connect: status, reason, and the protocol's own code. */
export function refusalOf({ status, body }: Answer): readonly (Json | undefined)[] {
  const error = body.error as Document | undefined;
  if (error !== undefined) return [status, error.reason, (error.metadata as Document).code];
  const details = (body.details ?? []) as { type?: string; debug?: { reason?: string } }[];
  return [status, details.find(({ type }) => type === "google.rpc.ErrorInfo")?.debug?.reason ?? body.code];
}
