import type { MessageInitShape } from "@bufbuild/protobuf";
import { create, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { FIRST_PREVIOUS_HASH, seal } from "@depute/asp";
import type { AgentCardSchema } from "@depute/contracts/asp/v0/agent_card_pb";
import { type Envelope, EnvelopeSchema, type Performative } from "@depute/contracts/asp/v0/envelope_pb";
import type { Session } from "@depute/contracts/asp/v0/session_pb";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { PolicyDecision, PolicyService } from "@depute/contracts/depute/registry/v1/policy_service_pb";
import { SessionService } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import {
  DeputeError,
  ErrorReason,
  encodeBase64Url,
  formatTime,
  ManualClock,
  newId,
  reasonName,
} from "@depute/core";
import { createProof } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import { defineService, fromConnectError } from "@depute/service";
import { as, startTestHost, type TestHost } from "@depute/service/testing";
import { decode } from "@depute/wire";
import { tasks } from "../../index.ts";
import { FakeLog } from "./fake-log.ts";

type Card = MessageInitShape<typeof AgentCardSchema>;

/** An agent of a test, with its key. */
export interface Person {
  readonly uri: string;
  readonly seed: Uint8Array;
  readonly key: string;
}

function person(name: string): Person {
  const seed = nativeEngine.sha256(new TextEncoder().encode(name));
  return {
    uri: `agent://${name}.example/desk/${name}`,
    seed,
    key: encodeBase64Url(nativeEngine.publicKey(seed)),
  };
}

export const [ANN, BEN, EVE, ZOE] = [person("ann"), person("ben"), person("eve"), person("zoe")];
const PEOPLE = [ANN, BEN, EVE, ZOE];

const PATH = `/${SessionService.typeName}`;

const FAST = Array(5).fill("1000000").join(",");

/** Fields of a message's envelope besides the content. */
export interface Sent {
  readonly recipient?: string;
  /** The proof in the message; if absent, a new proof by the sender's key. */
  readonly proof?: string;
}

/** The tasks service with its sessions module, a fake registry of the test's agents, and a fake transparency log. */
export class Stage {
  readonly clock = new ManualClock(Date.parse("2026-03-07T15:00:00.000Z"));
  readonly log = new FakeLog(this.clock);
  /** Pairs of a hidden agent and the viewer that must not see it. */
  readonly hidden: { agent: string; from: string }[] = [];
  /** URIs of agents whose manifests forbid every delegation. */
  readonly restricted = new Set<string>();
  /** The contents of agents' cards by the agents' URIs. */
  readonly cards = new Map<string, Omit<Card, "$typeName">>();
  #host: TestHost | undefined;

  async start(settings: readonly string[] = []): Promise<this> {
    // Tests send more messages per minute than the default rates allow.
    const rates = settings.includes("--asp-message-rates") ? [] : ["--asp-message-rates", FAST];
    const args = [...rates, ...settings];
    const fakes = [this.#registry(), nothing("tokens"), this.log.module()];
    const principals = PEOPLE.map(({ key }) => key);
    const organizations = { [ANN.key]: "acme", [BEN.key]: "globex" };
    const { clock } = this;
    this.#host = await startTestHost({ module: tasks, args, fakes, clock, principals, organizations });
    return this;
  }

  get host(): TestHost {
    if (this.#host === undefined) throw new Error("the stage is not started");
    return this.#host;
  }

  get api() {
    return this.host.client(SessionService);
  }

  stop(): Promise<void> {
    return this.host.stop();
  }

  /** Creates an EdDSA proof for a call of the session service. */
  proof({ seed, key }: Person, method: string, jti?: string): string {
    const claims = { htm: "POST", htu: `${PATH}/${method}`, now: this.clock.now(), ...(jti && { jti }) };
    return createProof(nativeEngine, { principal: { id: key }, privateKey: seed }, claims);
  }

  /**
   * Signs a message that follows the last message of a session. With a session id instead of a session, the message is
   * the session's first.
   */
  message(
    actor: Person,
    performative: keyof typeof Performative,
    body: JsonObject,
    session: Session | string,
    { recipient, proof }: Sent = {},
  ): Envelope {
    const knownSession = typeof session === "string" ? undefined : session;
    const sequence =
      knownSession?.participants.find(({ agentId }) => agentId === actor.uri)?.nextSequenceNumber ?? 0n;
    const method = knownSession === undefined ? "CreateSession" : "AppendMessage";
    const document: JsonValue = {
      version: "asp/0.1",
      messageId: newId(),
      sessionId: typeof session === "string" ? session : session.sessionId,
      sequenceNumber: Number(sequence),
      timestamp: formatTime(this.clock.now()),
      sender: {
        agentId: actor.uri,
        orgId: "org",
        trustScore: 50,
        dpopProof: proof ?? this.proof(actor, method),
      },
      ...(recipient === undefined ? {} : { recipient }),
      performative,
      content: { mimeType: "application/asp+json", body },
      integrity: {
        hash: FIRST_PREVIOUS_HASH,
        previousHash: knownSession?.lastHash ?? FIRST_PREVIOUS_HASH,
        signature: `ed25519:${"0".repeat(128)}`,
      },
    };
    const decoded = decode(EnvelopeSchema, document);
    if (!decoded.ok) throw new Error(decoded.error.message);
    return seal(nativeEngine, create(EnvelopeSchema, decoded.message), actor.seed);
  }

  /** Lets Ann invite Ben. */
  async invite(): Promise<Session> {
    const envelope = this.message(ANN, "PROPOSE", INVITATION, newId(), { recipient: BEN.uri });
    const { session } = await this.api.createSession({ invitation: envelope }, as(ANN.key));
    return requirePresent(session);
  }

  async session(sessionId: string, actor: Person = ANN): Promise<Session> {
    return requirePresent((await this.api.getSession({ sessionId }, as(actor.key))).session);
  }

  /**
   * Sends a message that follows the session's last message.
   *
   * @returns the sent message
   */
  async say(
    actor: Person,
    performative: keyof typeof Performative,
    body: JsonObject,
    { sessionId }: { readonly sessionId: string },
    sent: Sent = {},
  ): Promise<Envelope> {
    const envelope = this.message(actor, performative, body, await this.session(sessionId, actor), sent);
    await this.api.appendMessage({ envelope }, as(actor.key));
    return envelope;
  }

  /** Lets Ann and Ben begin a session and introduce themselves to each other. */
  async introduced(): Promise<Session> {
    const session = await this.invite();
    await this.say(BEN, "ACCEPT", { referenceId: "inv" }, session);
    for (const actor of [ANN, BEN]) {
      await this.say(
        actor,
        "INFORM",
        { informType: "identity", data: { agentId: actor.uri, name: "n" } },
        session,
      );
    }
    return this.session(session.sessionId);
  }

  #registry() {
    return defineService({
      name: "registry",
      settings: {},
      descriptors: [],
      start: async () => ({
        routes: (router) => {
          router.service(PolicyService, {
            checkDelegation: ({ fromPrincipal }) => {
              const owners = PEOPLE.filter(({ key }) => key === fromPrincipal);
              const bound = owners.find(({ uri }) => this.restricted.has(uri));
              if (bound === undefined) return { allowed: true, decision: PolicyDecision.NOT_BOUND };
              const agentId = bound.uri.slice(bound.uri.lastIndexOf("/") + 1);
              return { allowed: false, decision: PolicyDecision.NOT_ALLOWED, agentId };
            },
          });
          router.service(AgentService, {
            getAgent: ({ agentId: id, viewer }) => {
              const found = PEOPLE.find(({ uri }) => uri.endsWith(`/${id}`));
              const isHidden = this.hidden.some((pair) => pair.agent === id && pair.from === viewer);
              if (found === undefined || isHidden)
                throw new DeputeError(ErrorReason.AGENT_NOT_FOUND, "no such agent");
              return { agent: { id, principal: found.key, status: AgentStatus.ACTIVE } };
            },
            getAgentByUri: ({ uri, viewer }) => {
              const personOf = PEOPLE.find((one) => one.uri === uri);
              const id = uri.slice(uri.lastIndexOf("/") + 1);
              const isHidden = this.hidden.some((pair) => pair.agent === id && pair.from === viewer);
              if (personOf === undefined || isHidden) {
                throw new DeputeError(ErrorReason.AGENT_NOT_FOUND, "no such agent");
              }
              const card = { ...this.cards.get(uri), agentId: uri, name: id };
              return { agent: { id, principal: personOf.key, status: AgentStatus.ACTIVE, card } };
            },
          });
        },
        close: async () => {},
      }),
    });
  }
}

export const INVITATION = { proposalId: "inv", type: "session-invitation", subject: "s" };

/** Returns the reason of a refused call. */
export async function refusal(call: Promise<unknown>): Promise<string> {
  return (await refusalCode(call))[0];
}

export async function refusalCode(
  call: Promise<unknown>,
): Promise<[reason: string, code: string | undefined]> {
  return call.then(
    () => ["nothing was refused", undefined],
    (thrown: unknown) => {
      const { reason, metadata } = fromConnectError(thrown);
      return [reasonName(reason), metadata.code];
    },
  );
}

function nothing(name: "tokens") {
  return defineService({
    name,
    settings: {},
    descriptors: [],
    start: async () => ({ routes: () => {}, close: async () => {} }),
  });
}

function requirePresent<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the answer has no session");
  return value;
}
