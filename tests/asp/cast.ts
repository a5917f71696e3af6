import { create, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { seal } from "@depute/asp";
import { type Envelope, EnvelopeSchema, type Performative } from "@depute/contracts/asp/v0/envelope_pb";
import { type Session, SessionSchema } from "@depute/contracts/asp/v0/session_pb";
import { SessionService } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { encodeBase64Url, newId } from "@depute/core";
import { createProof } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import { decode, decodeValid, encode } from "@depute/wire";

/** An agent with its own key. */
export interface Agent {
  readonly uri: string;
  readonly orgId: string;
  readonly seed: Uint8Array;
  readonly key: string;
}

export function agent(uri: string, orgId: string): Agent {
  const seed = nativeEngine.sha256(new TextEncoder().encode(`fixture ${uri}`));
  return { uri, orgId, seed, key: encodeBase64Url(nativeEngine.publicKey(seed)) };
}

export const ALPHA = agent("agent://acme.com/procurement/alpha-buyer", "org_acme");
export const BETA = agent("agent://softwarecorp.io/sales/beta-vendor", "org_softwarecorp");
export const GAMMA = agent("agent://verifyco.com/compliance/gamma-auditor", "org_verifyco");

/** The trust score of each agent, as messages state it. `register` sets it, and tests may set it again. */
export const scores = new Map<string, number>();

/** One transport of sessions: HTTP or gRPC. */
export interface Wire {
  open(invitation: Envelope): Promise<Session>;
  append(envelope: Envelope): Promise<{ ordinal: number }>;
  get(sessionId: string): Promise<Session>;
}

export function overGrpc(sessions: Client<typeof SessionService>): Wire {
  const requireSession = (session: Session | undefined): Session => {
    if (session === undefined) throw new Error("the answer has no session");
    return session;
  };
  return {
    open: async (invitation) => requireSession((await sessions.createSession({ invitation })).session),
    append: async (envelope) => {
      const { sequence, ...rest } = await sessions.appendMessage({ envelope });
      return { ...rest, ordinal: Number(sequence) };
    },
    get: async (sessionId) => requireSession((await sessions.getSession({ sessionId })).session),
  };
}

/** Makes a proof of possession for a call of the session service; it is valid on every wire. */
export function proof(by: Pick<Agent, "seed" | "key">, method: string): string {
  return proofAt(by, `/${SessionService.typeName}/${method}`);
}

/** Makes a proof of possession for an address. */
export function proofAt({ seed, key }: Pick<Agent, "seed" | "key">, htu: string, htm = "POST"): string {
  return createProof(nativeEngine, { principal: { id: key }, privateKey: seed }, { htm, htu });
}

/** Writes a signed message that follows the current head of a session. */
export function write(
  { uri, orgId, seed, key }: Agent,
  performative: keyof typeof Performative,
  body: JsonObject,
  session: Session | { sessionId: string },
  recipient?: string,
  dpopProof?: string,
): Envelope {
  const knownSession = "participants" in session ? session : undefined;
  const me = knownSession?.participants.find(({ agentId }) => agentId === uri);
  const document: JsonValue = {
    version: "asp/0.1",
    messageId: newId(),
    sessionId: session.sessionId,
    sequenceNumber: Number(me?.nextSequenceNumber ?? 0n),
    timestamp: new Date().toISOString(),
    sender: {
      agentId: uri,
      orgId,
      trustScore: me?.trustScore ?? scores.get(uri) ?? 0,
      dpopProof:
        dpopProof ?? proof({ seed, key }, knownSession === undefined ? "CreateSession" : "AppendMessage"),
    },
    ...(recipient === undefined ? {} : { recipient }),
    performative,
    content: { mimeType: "application/asp+json", body },
    integrity: {
      hash: `sha256:${"0".repeat(64)}`,
      previousHash: knownSession?.lastHash ?? `sha256:${"0".repeat(64)}`,
      signature: `ed25519:${"0".repeat(128)}`,
    },
  };
  const decoded = decode(EnvelopeSchema, document);
  if (!decoded.ok) throw new Error(`${decoded.error.path}: ${decoded.error.message}`);
  return seal(nativeEngine, create(EnvelopeSchema, decoded.message), seed);
}

/** Returns the document of an answer; throws the error of a refusal. */
export async function documentOf(response: Response): Promise<JsonObject> {
  const body = (await response.json()) as JsonObject;
  if (response.ok) return body;
  throw new HttpRefusal(response.status, body.error as JsonObject);
}

export class HttpRefusal extends Error {
  readonly status: number;
  readonly error: JsonObject;

  constructor(status: number, error: JsonObject) {
    super(JSON.stringify(error));
    this.status = status;
    this.error = error;
  }
}

/** Makes the wire of plain HTTP. The wire and the platform share only the form of the documents. */
export function overHttp(url: string): Wire {
  const post = async (path: string, envelope: Envelope) =>
    documentOf(
      await fetch(`${url}/v1/asp${path}`, {
        method: "POST",
        headers: { "content-type": "application/asp+json" },
        body: JSON.stringify(encode(EnvelopeSchema, envelope)),
      }),
    );
  const session = (document: JsonObject): Session => {
    const decoded = decodeValid(SessionSchema, document);
    if (!decoded.ok) throw new Error(JSON.stringify(decoded.errors));
    return decoded.message;
  };
  return {
    open: async (invitation) => session(await post("/sessions", invitation)),
    append: async (envelope) => {
      const { ordinal } = await post(`/sessions/${envelope.sessionId}/messages`, envelope);
      return { ordinal: Number(ordinal) };
    },
    get: async (sessionId) => session(await documentOf(await fetch(`${url}/v1/asp/sessions/${sessionId}`))),
  };
}
