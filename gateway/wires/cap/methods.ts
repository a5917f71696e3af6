import { create, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { type AgentManifest, AgentManifestSchema } from "@depute/contracts/cap/v1/manifest_pb";
import { CapMessageSchema } from "@depute/contracts/cap/v1/message_pb";
import { type Agent, AgentSchema } from "@depute/contracts/depute/registry/v1/agent_pb";
import {
  ReviewKind,
  ReviewState,
  ReviewVerdict,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { DeputeError, ErrorReason, invalid, isObject } from "@depute/core";
import { reasonOf } from "@depute/service";
import { decodeValid, encode, refusalOf } from "@depute/wire";
import type { Clients } from "../../src/clients.ts";
import type { WireCall } from "../../src/wire-call.ts";
import { inboxDocument, lineageDocument, reviewDocument, sentDocument } from "./documents.ts";
import type { About } from "./errors.ts";
import type { ReadManifest } from "./validate.ts";

/** A request as the methods of this wire see it. */
export interface Asked {
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly call: WireCall;
  /** Makes the call idempotent (`idempotency-key`); empty for none. */
  readonly key: string;
  /** The document of the body. */
  body(): Promise<JsonValue>;
  /** Says what the request is about, as soon as that is known: an error names it. */
  about(about: About): void;
}

/** What is answered, with its HTTP status. */
export interface Answer {
  readonly status: number;
  readonly body: JsonValue;
}

const ok = (body: JsonObject, status = 200): Answer => ({ status, body });

/** What each call of the CAP wire does. */
export class CapMethods {
  readonly #clients: Clients;
  readonly #readManifest: ReadManifest;

  constructor(clients: Clients, readManifest: ReadManifest) {
    this.#clients = clients;
    this.#readManifest = readManifest;
  }

  /** Sends a message. (CAP "Base Message") */
  async send({ body, call, key, about }: Asked): Promise<Answer> {
    const document = await body();
    about(aboutOf(document));
    const decoded = decodeValid(CapMessageSchema, document);
    if (!decoded.ok) throw refusalOf(...decoded.errors);
    const request = { requestId: key, message: decoded.message };
    const sent = await this.#clients.messages.sendMessage(request, call.asCaller);
    return ok(sentDocument(aboutOf(document).taskId ?? "", sent), 201);
  }

  /** A page of an inbox. */
  async inbox({ parameters: { id: agentId = "" }, query, call }: Asked): Promise<Answer> {
    const page = await this.#clients.messages.listInbox(
      {
        agentId,
        afterSequence: BigInt(wholeNumber(query, "after")),
        pageSize: wholeNumber(query, "limit", 1000),
        unacknowledgedOnly: query.get("unacknowledged") === "true",
      },
      call.asCaller,
    );
    return ok({
      messages: page.messages.map(inboxDocument),
      last_sequence: Number(page.lastSequence),
      ...(page.nextAfterSequence === 0n ? {} : { next_after: Number(page.nextAfterSequence) }),
    });
  }

  /** Notes that messages were read: `{"up_to": 7}` or `{"sequences": [3, 5]}`. */
  async acknowledge({ parameters: { id: agentId = "" }, body, call }: Asked): Promise<Answer> {
    const document = await body();
    if (!isObject(document)) throw invalid("", "must be an object");
    const { up_to: upTo = 0, sequences = [] } = document;
    if (!isSequence(upTo)) throw invalid("/up_to", "must be a whole number, 0 or more");
    if (!Array.isArray(sequences) || !sequences.every(isSequence)) {
      throw invalid("/sequences", "must be a list of whole numbers");
    }
    const request = { agentId, upToSequence: BigInt(upTo), sequences: sequences.map(BigInt) };
    const { unacknowledged } = await this.#clients.messages.acknowledgeMessages(request, call.asCaller);
    return ok({ unacknowledged: Number(unacknowledged) });
  }

  /** What a participant sent and got on a task. */
  async conversation({ parameters: { id = "", agent = "" }, query, call }: Asked): Promise<Answer> {
    const request = {
      taskId: id,
      agentId: agent,
      afterNumber: BigInt(wholeNumber(query, "after")),
      pageSize: wholeNumber(query, "limit", 1000),
    };
    const page = await this.#clients.messages.listConversation(request, call.asCaller);
    return ok({
      messages: page.messages.flatMap(({ message }) => (message ? [encode(CapMessageSchema, message)] : [])),
      ...(page.nextAfterNumber === 0n ? {} : { next_after: Number(page.nextAfterNumber) }),
    });
  }

  /** The tree that a task is in. */
  async lineage({ parameters: { id: taskId = "" }, call }: Asked) {
    const { root, text, mermaid, truncated } = await this.#clients.messages.traceLineage(
      { taskId },
      call.asCaller,
    );
    if (root === undefined)
      throw new DeputeError(ErrorReason.INTERNAL, "a service answered without its message");
    return { text, mermaid, document: { ...lineageDocument(root), truncated } };
  }

  /** The manifests of agents that have one. */
  async manifests({ query, call }: Asked): Promise<Answer> {
    const request = { pageSize: wholeNumber(query, "limit", 1000), pageToken: query.get("cursor") ?? "" };
    const page = await this.#clients.agents.listAgents(request, call.asCaller);
    return ok({
      agents: page.agents.flatMap(({ manifest }) =>
        manifest ? [encode(AgentManifestSchema, manifest)] : [],
      ),
      ...(page.nextPageToken === "" ? {} : { next_cursor: page.nextPageToken }),
    });
  }

  async manifest({ parameters: { id = "" }, call }: Asked): Promise<Answer> {
    const { agent } = await this.#clients.agents.getAgent({ id }, call.asCaller);
    if (agent?.manifest !== undefined) {
      return { status: 200, body: encode(AgentManifestSchema, agent.manifest) };
    }
    throw new DeputeError(ErrorReason.AGENT_NOT_FOUND, "no such agent with a manifest", {
      metadata: { agent: id },
    });
  }

  /**
   * Registers an agent by its manifest. What else is registered of it stays. A new agent is the caller's own, by the rule of
   * RegisterAgent; `principal` in the address names another key.
   */
  async register({ parameters: { id }, query, body, call, key }: Asked): Promise<Answer> {
    const manifest = this.#readManifest(await body());
    // An instance is registered under its own id with its base's manifest.
    const agentId = id ?? manifest.id;
    if (agentId !== manifest.id && !agentId.startsWith(`${manifest.id}:`)) {
      throw invalid("/id", "is not that of the address");
    }
    const agent = await this.#recordOf(agentId, manifest, query.get("principal") ?? undefined, call);
    const requestId = key === "" ? crypto.randomUUID() : key;
    const registered = await this.#clients.agents.registerAgent({ requestId, agent }, call.asCaller);
    return {
      status: 201,
      body: encode(AgentManifestSchema, registered.agent?.manifest ?? manifest),
    };
  }

  async #recordOf(
    id: string,
    manifest: AgentManifest,
    principal: string | undefined,
    call: WireCall,
  ): Promise<Agent> {
    const known = await this.#known(id, call);
    const isInstance = id !== manifest.id;
    const record = known ?? create(AgentSchema, { id });
    return create(AgentSchema, {
      ...record,
      ...(principal === undefined ? {} : { principal }),
      // The version's word names a content, and this is another one.
      version: "",
      ...(isInstance ? {} : { manifest }),
    });
  }

  async #known(id: string, call: WireCall): Promise<Agent | undefined> {
    try {
      return (await this.#clients.agents.getAgent({ id }, call.aside)).agent;
    } catch (thrown) {
      if (reasonOf(thrown) === ErrorReason.AGENT_NOT_FOUND) return undefined;
      throw thrown;
    }
  }

  /** The caller's reviews, or those of the principal that it names. */
  async reviews({ query, call }: Asked): Promise<Answer> {
    const state = query.get("state")?.toUpperCase() ?? "PENDING";
    if (!Object.hasOwn(ReviewState, state)) throw invalid("state", "is not a state of a review");
    const page = await this.#clients.reviews.listReviews(
      {
        reviewer: query.get("reviewer") ?? "",
        kind: ReviewKind.OVERSIGHT,
        state: ReviewState[state as keyof typeof ReviewState],
        pageSize: wholeNumber(query, "limit", 1000),
        pageToken: query.get("cursor") ?? "",
      },
      call.asCaller,
    );
    return ok({
      reviews: page.reviews.map(reviewDocument),
      ...(page.nextPageToken === "" ? {} : { next_cursor: page.nextPageToken }),
    });
  }

  async review({ parameters: { id = "" }, call }: Asked): Promise<Answer> {
    const { review } = await this.#clients.reviews.getReview({ id }, call.asCaller);
    if (review === undefined) throw reviewNotFound(id);
    return ok(reviewDocument(review));
  }

  /** Decides: `{"decision": "approved", "comment": "..."}`, with `reviewer` where the caller may be several. */
  async decide({ parameters: { id = "" }, body, call }: Asked): Promise<Answer> {
    const document = await body();
    if (!isObject(document)) throw invalid("", "must be an object");
    const { decision = "", comment = "", reviewer = "" } = document;
    const word = String(decision).toUpperCase();
    if (word === "UNSPECIFIED" || !Object.hasOwn(ReviewVerdict, word)) {
      throw invalid("/decision", "must be approved, changes_requested or rejected");
    }
    const verdict = ReviewVerdict[word as keyof typeof ReviewVerdict];
    const request = { id, verdict, reason: String(comment), reviewer: String(reviewer) };
    const { review } = await this.#clients.reviews.decideReview(request, call.asCaller);
    if (review === undefined) throw reviewNotFound(id);
    return ok(reviewDocument(review));
  }
}

function reviewNotFound(review: string): DeputeError {
  return new DeputeError(ErrorReason.REVIEW_NOT_FOUND, "no such review", { metadata: { review } });
}

/** What a message is about, as far as it says so. */
function aboutOf(document: JsonValue): About {
  if (!isObject(document)) return {};
  const { task_id: taskId, sender_id: senderId } = document;
  return {
    ...(typeof taskId === "string" ? { taskId: taskId.slice(0, 256) } : {}),
    ...(typeof senderId === "string" ? { senderId: senderId.slice(0, 256) } : {}),
  };
}

function isSequence(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

/** A whole number of the address; 0 when it is not there. */
export function wholeNumber(query: URLSearchParams, name: string, max = Number.MAX_SAFE_INTEGER): number {
  const text = query.get(name) ?? "0";
  const value = Number(text);
  if (!/^\d{1,16}$/.test(text) || value > max) throw invalid(name, `is a whole number up to ${max}`);
  return value;
}
