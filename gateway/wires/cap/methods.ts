import { create, type JsonValue } from "@bufbuild/protobuf";
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
import { type Answer, type Asked, json } from "../../src/edge/route.ts";
import type { WireCall } from "../../src/wire-call.ts";
import { documentOf, inboxDocument, lineageDocument, reviewDocument, sentDocument } from "./documents.ts";
import { type About, concerning } from "./errors.ts";
import type { ReadManifest } from "./validate.ts";

/** What each call of the CAP wire does. */
export class CapMethods {
  readonly #clients: Clients;
  readonly #readManifest: ReadManifest;

  constructor(clients: Clients, readManifest: ReadManifest) {
    this.#clients = clients;
    this.#readManifest = readManifest;
  }

  /** Sends a message. (CAP "Base Message") */
  async send(asked: Asked): Promise<Answer> {
    const document = documentOf(asked.body);
    const about = aboutOf(document);
    try {
      const decoded = decodeValid(CapMessageSchema, document);
      if (!decoded.ok) throw refusalOf(...decoded.errors);
      const request = { requestId: keyOf(asked), message: decoded.message };
      const sent = await this.#clients.messages.sendMessage(request, asked.call.asCaller);
      return json(sentDocument(about.taskId ?? "", sent), 201);
    } catch (thrown) {
      throw concerning(thrown, about);
    }
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
    return json({
      messages: page.messages.map(inboxDocument),
      last_sequence: Number(page.lastSequence),
      ...(page.nextAfterSequence === 0n ? {} : { next_after: Number(page.nextAfterSequence) }),
    });
  }

  /** Notes that messages were read: `{"up_to": 7}` or `{"sequences": [3, 5]}`. */
  async acknowledge({ parameters: { id: agentId = "" }, body, call }: Asked): Promise<Answer> {
    const document = documentOf(body);
    if (!isObject(document)) throw invalid("", "must be an object");
    const { up_to: upTo = 0, sequences = [] } = document;
    if (!isSequence(upTo)) throw invalid("/up_to", "must be a whole number, 0 or more");
    if (!Array.isArray(sequences) || !sequences.every(isSequence)) {
      throw invalid("/sequences", "must be a list of whole numbers");
    }
    const request = { agentId, upToSequence: BigInt(upTo), sequences: sequences.map(BigInt) };
    const { unacknowledged } = await this.#clients.messages.acknowledgeMessages(request, call.asCaller);
    return json({ unacknowledged: Number(unacknowledged) });
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
    return json({
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
    return json({
      agents: page.agents.flatMap(({ manifest }) =>
        manifest ? [encode(AgentManifestSchema, manifest)] : [],
      ),
      ...(page.nextPageToken === "" ? {} : { next_cursor: page.nextPageToken }),
    });
  }

  async manifest({ parameters: { id = "" }, call }: Asked): Promise<Answer> {
    const { agent } = await this.#clients.agents.getAgent({ id }, call.asCaller);
    if (agent?.manifest !== undefined) {
      return json(encode(AgentManifestSchema, agent.manifest));
    }
    throw new DeputeError(ErrorReason.AGENT_NOT_FOUND, "no such agent with a manifest", {
      metadata: { agent: id },
    });
  }

  /**
   * Registers an agent by its manifest. What else is registered of it stays. A new agent is the caller's own, by the rule of
   * RegisterAgent; `principal` in the address names another key.
   */
  async register(asked: Asked): Promise<Answer> {
    const { query, call } = asked;
    const { id } = asked.parameters;
    const manifest = this.#readManifest(documentOf(asked.body));
    // An instance is registered under its own id with its base's manifest.
    const agentId = id ?? manifest.id;
    if (agentId !== manifest.id && !agentId.startsWith(`${manifest.id}:`)) {
      throw invalid("/id", "is not that of the address");
    }
    const agent = await this.#recordOf(agentId, manifest, query.get("principal") ?? undefined, call);
    const requestId = keyOf(asked) || crypto.randomUUID();
    const registered = await this.#clients.agents.registerAgent({ requestId, agent }, call.asCaller);
    return json(encode(AgentManifestSchema, registered.agent?.manifest ?? manifest), 201);
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
    return json({
      reviews: page.reviews.map(reviewDocument),
      ...(page.nextPageToken === "" ? {} : { next_cursor: page.nextPageToken }),
    });
  }

  async review({ parameters: { id = "" }, call }: Asked): Promise<Answer> {
    const { review } = await this.#clients.reviews.getReview({ id }, call.asCaller);
    if (review === undefined) throw reviewNotFound(id);
    return json(reviewDocument(review));
  }

  /** Decides: `{"decision": "approved", "comment": "..."}`, with `reviewer` where the caller may be several. */
  async decide({ parameters: { id = "" }, body, call }: Asked): Promise<Answer> {
    const document = documentOf(body);
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
    return json(reviewDocument(review));
  }
}

function reviewNotFound(review: string): DeputeError {
  return new DeputeError(ErrorReason.REVIEW_NOT_FOUND, "no such review", { metadata: { review } });
}

/** Makes the call idempotent; empty for none. */
function keyOf({ headers }: Asked): string {
  return String(headers["idempotency-key"] ?? "");
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
