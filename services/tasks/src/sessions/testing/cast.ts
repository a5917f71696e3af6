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

/** An agent with its key, whose signatures nobody else can make. */
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

/** What a message is sent with, beside what it says. */
export interface Sent {
  readonly recipient?: string;
  /** The proof in the message, in place of one by the sender's own key. */
  readonly proof?: string;
}

/** The tasks service with sessions, a registry that knows the people, and a log. */
export class Stage {
  readonly clock = new ManualClock(Date.parse("2026-03-07T15:00:00.000Z"));
  readonly log = new FakeLog(this.clock);
  /** From whom an agent is hidden. */
  readonly hidden: { agent: string; from: string }[] = [];
  /** Agents whose manifests let them delegate to none of the others, by their URIs. */
  readonly restricted = new Set<string>();
  /** What agents' cards say, by their URIs. */
  readonly cards = new Map<string, Omit<Card, "$typeName">>();
  #host: TestHost | undefined;

  async start(settings: readonly string[] = []): Promise<this> {
    // Tests say more in a minute than anybody would.
    const rates = settings.includes("--asp-message-rates") ? [] : ["--asp-message-rates", FAST];
    const args = [...rates, ...settings];
    const fakes = [this.#registry(), nothing("tokens"), this.log.module()];
    const principals = PEOPLE.map(({ key }) => key);
    this.#host = await startTestHost({ module: tasks, args, fakes, clock: this.clock, principals });
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

  /** A proof by EdDSA that a key is at hand, for a call of the session service. */
  proof({ seed, key }: Person, method: string, jti?: string): string {
    const claims = { htm: "POST", htu: `${PATH}/${method}`, now: this.clock.now(), ...(jti && { jti }) };
    return createProof(nativeEngine, { principal: { id: key }, privateKey: seed }, claims);
  }

  /** A signed message in its place after what a session has; of a session that is only an id, its first. */
  message(
    who: Person,
    performative: keyof typeof Performative,
    body: JsonObject,
    session: Session | string,
    { recipient, proof }: Sent = {},
  ): Envelope {
    const known = typeof session === "string" ? undefined : session;
    const sequence = known?.participants.find(({ agentId }) => agentId === who.uri)?.nextSequenceNumber ?? 0n;
    const method = known === undefined ? "CreateSession" : "AppendMessage";
    const document: JsonValue = {
      version: "asp/0.1",
      messageId: newId(),
      sessionId: typeof session === "string" ? session : session.sessionId,
      sequenceNumber: Number(sequence),
      timestamp: formatTime(this.clock.now()),
      sender: { agentId: who.uri, orgId: "org", trustScore: 50, dpopProof: proof ?? this.proof(who, method) },
      ...(recipient === undefined ? {} : { recipient }),
      performative,
      content: { mimeType: "application/asp+json", body },
      integrity: {
        hash: FIRST_PREVIOUS_HASH,
        previousHash: known?.lastHash ?? FIRST_PREVIOUS_HASH,
        signature: `ed25519:${"0".repeat(128)}`,
      },
    };
    const decoded = decode(EnvelopeSchema, document);
    if (!decoded.ok) throw new Error(decoded.error.message);
    return seal(nativeEngine, create(EnvelopeSchema, decoded.message), who.seed);
  }

  /** Ann invites Ben. */
  async invite(): Promise<Session> {
    const envelope = this.message(ANN, "PROPOSE", INVITATION, newId(), { recipient: BEN.uri });
    const { session } = await this.api.createSession({ invitation: envelope }, as(ANN.key));
    return present(session);
  }

  async session(sessionId: string, who: Person = ANN): Promise<Session> {
    return present((await this.api.getSession({ sessionId }, as(who.key))).session);
  }

  /** Says something after whatever the session has. @returns the session after it, as who spoke sees it */
  async say(
    who: Person,
    performative: keyof typeof Performative,
    body: JsonObject,
    { sessionId }: { readonly sessionId: string },
    sent: Sent = {},
  ): Promise<Envelope> {
    const envelope = this.message(who, performative, body, await this.session(sessionId, who), sent);
    await this.api.appendMessage({ envelope }, as(who.key));
    return envelope;
  }

  /** Ann and Ben, introduced. */
  async introduced(): Promise<Session> {
    const session = await this.invite();
    await this.say(BEN, "ACCEPT", { referenceId: "inv" }, session);
    for (const who of [ANN, BEN]) {
      await this.say(
        who,
        "INFORM",
        { informType: "identity", data: { agentId: who.uri, name: "n" } },
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
              const own = PEOPLE.filter(({ key }) => key === fromPrincipal);
              const bound = own.find(({ uri }) => this.restricted.has(uri));
              if (bound === undefined) return { allowed: true, decision: PolicyDecision.NOT_BOUND };
              const agentId = bound.uri.slice(bound.uri.lastIndexOf("/") + 1);
              return { allowed: false, decision: PolicyDecision.NOT_ALLOWED, agentId };
            },
          });
          router.service(AgentService, {
            getAgent: ({ id, viewer }) => {
              const found = PEOPLE.find(({ uri }) => uri.endsWith(`/${id}`));
              const isHidden = this.hidden.some((pair) => pair.agent === id && pair.from === viewer);
              if (found === undefined || isHidden)
                throw new DeputeError(ErrorReason.AGENT_NOT_FOUND, "no such agent");
              return { agent: { id, principal: found.key, status: AgentStatus.ACTIVE } };
            },
            getAgentByUri: ({ uri, viewer }) => {
              const found = PEOPLE.find((one) => one.uri === uri);
              const id = uri.slice(uri.lastIndexOf("/") + 1);
              const isHidden = this.hidden.some((pair) => pair.agent === id && pair.from === viewer);
              if (found === undefined || isHidden) {
                throw new DeputeError(ErrorReason.AGENT_NOT_FOUND, "no such agent");
              }
              const card = { ...this.cards.get(uri), agentId: uri, name: id };
              return { agent: { id, principal: found.key, status: AgentStatus.ACTIVE, card } };
            },
          });
        },
        close: async () => {},
      }),
    });
  }
}

export const INVITATION = { proposalId: "inv", type: "session-invitation", subject: "s" };

/** With which reason a call is refused, and the session's own code for it. */
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

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the answer has no session");
  return value;
}
