import { create, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import {
  type Envelope,
  EnvelopeSchema,
  type Performative,
  PerformativeSchema,
} from "@depute/contracts/asp/v0/envelope_pb";
import { encodeBase64Url, formatTime } from "@depute/core";
import { type CryptoEngine, portableEngine } from "@depute/dct";
import { decode } from "@depute/wire";
import { type Appended, append } from "../append.ts";
import type { AgentFacts } from "../context.ts";
import { seal } from "../integrity.ts";
import { idleSession, partyOf, type Session } from "../session.ts";
import type { Entry } from "../transcript.ts";

export const SESSION_ID = "019526b1-0000-7000-8000-000000000002";
/** The time of the first message in the ASP specification's scenario. */
export const T0 = Date.parse("2026-03-07T15:00:00.000Z");

/** An agent with its key. The seed of the key is SHA-256 of `fixture ` and the agent's id, as in the fixtures. */
export interface Actor extends AgentFacts {
  readonly agentId: string;
  readonly orgId: string;
  readonly trustScore: number;
  readonly seed: Uint8Array;
}

export function actor(
  agentId: string,
  orgId: string,
  trustScore: number,
  engine: CryptoEngine = portableEngine,
): Actor {
  const seed = engine.sha256(new TextEncoder().encode(`fixture ${agentId}`));
  return { agentId, orgId, trustScore, seed, key: encodeBase64Url(engine.publicKey(seed)) };
}

export const ALPHA = actor("agent://acme.com/procurement/alpha-buyer", "org_acme", 68);
export const BETA = actor("agent://softwarecorp.io/sales/beta-vendor", "org_softwarecorp", 85);
export const GAMMA = actor("agent://verifyco.com/compliance/gamma-auditor", "org_verifyco", 92);
export const DELTA = actor("agent://notary.example/desk/delta", "org_notary", 55);
export const EPSILON = actor("agent://broker.example/desk/epsilon", "org_broker", 40);
export const STRANGER = actor("agent://nobody.example/x/zeta", "org_zeta", 10);
export const CAST = [ALPHA, BETA, GAMMA, DELTA, EPSILON] as const;

export interface Draft {
  readonly messageId: string;
  readonly sequenceNumber: number;
  readonly timestamp: string;
  readonly recipient?: string;
  readonly previousHash: string;
  readonly constraints?: JsonObject;
  readonly sessionId?: string;
}

/** Writes and signs a message. */
export function message(
  { agentId, orgId, trustScore, seed }: Actor,
  performative: keyof typeof Performative,
  body: JsonObject,
  {
    messageId,
    sequenceNumber,
    timestamp,
    recipient,
    previousHash,
    constraints,
    sessionId = SESSION_ID,
  }: Draft,
  engine: CryptoEngine = portableEngine,
): Envelope {
  const document: JsonValue = {
    version: "asp/0.1",
    messageId,
    sessionId,
    sequenceNumber,
    timestamp,
    sender: { agentId, orgId, trustScore, dpopProof: "e30.e30.e30" },
    ...(recipient === undefined ? {} : { recipient }),
    performative,
    content: { mimeType: "application/asp+json", body },
    ...(constraints === undefined ? {} : { constraints }),
    integrity: {
      hash: `sha256:${"0".repeat(64)}`,
      previousHash,
      signature: `ed25519:${"0".repeat(128)}`,
    },
  };
  const decoded = decode(EnvelopeSchema, document);
  if (!decoded.ok) throw new Error(`${decoded.error.path}: ${decoded.error.message}`);
  return seal(engine, create(EnvelopeSchema, decoded.message), seed);
}

export interface Sent {
  readonly recipient?: string;
  readonly constraints?: JsonObject;
  /** Members that replace members of the correct message, so that a test can send a faulty message. */
  readonly wrong?: Partial<Draft>;
}

/** A session in a test. Its clock moves only when the test calls `pass`. */
export class Stage {
  session: Session;
  nowMs = T0;
  readonly entries: Entry[] = [];
  readonly engine: CryptoEngine;
  readonly actors: Map<string, Actor>;
  readonly #ids = new Set<string>();
  #count = 0;

  constructor(
    cast: readonly Actor[] = CAST,
    engine: CryptoEngine = portableEngine,
    sessionId: string = SESSION_ID,
  ) {
    this.engine = engine;
    this.actors = new Map(cast.map((one) => [one.agentId, one]));
    this.session = idleSession(sessionId, this.nowMs);
  }

  pass(ms: number): void {
    this.nowMs += ms;
  }

  /** Writes the sender's next message, but does not send it. */
  write(sender: Actor, performative: keyof typeof Performative, body: JsonObject, sent: Sent = {}): Envelope {
    this.#count += 1;
    const { recipient, constraints, wrong } = sent;
    return message(
      sender,
      performative,
      body,
      {
        messageId: `019526b1-0000-7000-8000-${String(this.#count).padStart(12, "0")}`,
        sequenceNumber: partyOf(this.session, sender.agentId)?.nextSequence ?? 0,
        timestamp: formatTime(this.nowMs),
        previousHash: this.session.lastHash,
        sessionId: this.session.sessionId,
        ...(recipient === undefined ? {} : { recipient }),
        ...(constraints === undefined ? {} : { constraints }),
        ...wrong,
      },
      this.engine,
    );
  }

  offer(envelope: Envelope): Appended {
    const result = append(this.session, envelope, {
      nowMs: this.nowMs,
      engine: this.engine,
      agent: (agentId) => this.actors.get(agentId),
      hasMessage: (id) => this.#ids.has(id),
    });
    this.session = result.session;
    if (result.ok) {
      this.#ids.add(envelope.messageId);
      this.entries.push({ envelope, receiveMs: this.nowMs });
    }
    return result;
  }

  /** Sends a message and returns its id. Throws if the message is refused. */
  say(sender: Actor, performative: keyof typeof Performative, body: JsonObject, sent: Sent = {}): string {
    const envelope = this.write(sender, performative, body, sent);
    const result = this.offer(envelope);
    if (!result.ok) throw new Error(`${performative}: ${result.refusal.code}: ${result.refusal.detail}`);
    return envelope.messageId;
  }

  /** Sends a message and returns its refusal code, or `appended` if it is accepted. */
  refusal(sender: Actor, performative: keyof typeof Performative, body: JsonObject, sent: Sent = {}): string {
    const result = this.offer(this.write(sender, performative, body, sent));
    return result.ok ? "appended" : result.refusal.code;
  }

  invite(by: Actor = ALPHA, whom: Actor = BETA, body: JsonObject = {}): void {
    this.say(
      by,
      "PROPOSE",
      { proposalId: "prop_inv", type: "session-invitation", subject: "Licensing", ...body },
      { recipient: whom.agentId },
    );
  }

  /** Plays a session up to the introductions. */
  introduce(by: Actor = ALPHA, whom: Actor = BETA): void {
    this.invite(by, whom);
    this.say(whom, "ACCEPT", { referenceId: "prop_inv" });
    for (const one of [by, whom]) this.say(one, "INFORM", identity(one));
  }

  /** Plays a session up to the first proposal, which is `prop_1` by the first party. */
  converse(by: Actor = ALPHA, whom: Actor = BETA): void {
    this.introduce(by, whom);
    this.say(by, "PROPOSE", proposal("prop_1"));
  }
}

/** Returns the body of an agent's introduction. */
export function identity({ agentId, key }: Actor): JsonObject {
  return {
    informType: "identity",
    data: { agentId, name: agentId, signingPublicKey: { kty: "OKP", crv: "Ed25519", x: key } },
  };
}

export function proposal(proposalId: string, more: JsonObject = {}): JsonObject {
  return { proposalId, type: "terms", subject: "Seats", terms: { seats: 100 }, ...more };
}

export function performativeName(performative: Performative): keyof typeof Performative {
  return (PerformativeSchema.value[performative]?.localName ?? "") as keyof typeof Performative;
}
