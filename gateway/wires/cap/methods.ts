import { create, type JsonValue } from "@bufbuild/protobuf";
import { type AgentManifest, AgentManifestSchema } from "@depute/contracts/cap/v1/manifest_pb";
import { CapMessageSchema } from "@depute/contracts/cap/v1/message_pb";
import { type Agent, AgentSchema } from "@depute/contracts/depute/registry/v1/agent_pb";
import {
  ReviewKind,
  ReviewState,
  ReviewVerdict,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { DeputeError, ErrorReason, invalid, isObject, randomUuid } from "@depute/core";
import { reasonOf } from "@depute/service";
import { decodeValid, encode, refusalOf } from "@depute/wire";
import type { Clients } from "../../edge/clients.ts";
import { renameFields } from "../../edge/fault.ts";
import { type Answer, json, type WireRequest } from "../../edge/route.ts";
import type { WireCall } from "../../edge/wire-call.ts";
import { documentOf, inboxDocument, lineageDocument, reviewDocument, sentDocument } from "./documents.ts";
import { type About, concerning } from "./errors.ts";
import type { ReadManifest } from "./validate.ts";

/** Implements the routes of the CAP wire. */
export class CapMethods {
  readonly #clients: Clients;
  readonly #readManifest: ReadManifest;

  constructor(clients: Clients, readManifest: ReadManifest) {
    this.#clients = clients;
    this.#readManifest = readManifest;
  }

  /** Sends a message. (CAP "Base Message") */
  async send(wireRequest: WireRequest): Promise<Answer> {
    const document = documentOf(wireRequest.body);
    const subject = aboutOf(document);
    try {
      const decoded = decodeValid(CapMessageSchema, document);
      if (!decoded.ok) throw refusalOf(...decoded.errors);
      const request = { requestId: keyOf(wireRequest), message: decoded.message };
      const sent = await this.#clients.messages.sendMessage(request, wireRequest.call.asCaller);
      return json(sentDocument(subject.taskId ?? "", sent), 201);
    } catch (thrown) {
      throw concerning(thrown, subject);
    }
  }

  /** Returns a page of an inbox. */
  async inbox({ parameters: { id: agentId = "" }, query, call }: WireRequest): Promise<Answer> {
    const page = await this.#clients.messages.listInbox(
      {
        agentId,
        afterSequence: BigInt(wholeNumber(query, "after")),
        pageSize: wholeNumber(query, "limit", 1000),
        unacknowledgedOnly: truth(query, "unacknowledged"),
      },
      call.asCaller,
    );
    return json({
      messages: page.messages.map(inboxDocument),
      last_sequence: Number(page.lastSequence),
      ...nextAfter(page),
    });
  }

  /** Marks messages as read: `{"up_to": 7}` or `{"sequences": [3, 5]}`. */
  async acknowledge({ parameters: { id: agentId = "" }, body, call }: WireRequest): Promise<Answer> {
    const document = documentOf(body);
    if (!isObject(document)) throw invalid("", "must be an object");
    const { up_to: upTo = 0, sequences = [] } = document;
    if (!isSequence(upTo)) throw invalid("/up_to", "must be a whole number of at least 0");
    if (!Array.isArray(sequences) || !sequences.every(isSequence)) {
      throw invalid("/sequences", "must be a list of whole numbers");
    }
    if (upTo === 0 && sequences.length === 0) throw invalid("", "up_to or sequences is required");
    const request = { agentId, upToSequence: BigInt(upTo), sequences: sequences.map(BigInt) };
    try {
      const { unacknowledgedCount } = await this.#clients.messages.acknowledgeMessages(
        request,
        call.asCaller,
      );
      return json({ unacknowledged: Number(unacknowledgedCount) });
    } catch (thrown) {
      throw renameFields(thrown, { up_to_sequence: "/up_to", sequences: "/sequences" });
    }
  }

  /** Returns a participant's messages about a task: those it sent, and those it received. */
  async conversation({ parameters: { id = "", agent = "" }, query, call }: WireRequest): Promise<Answer> {
    const request = {
      taskId: id,
      agentId: agent,
      afterSequence: BigInt(wholeNumber(query, "after")),
      pageSize: wholeNumber(query, "limit", 1000),
    };
    const page = await this.#clients.messages.listConversation(request, call.asCaller);
    return json({
      messages: page.messages.flatMap(({ message }) => (message ? [encode(CapMessageSchema, message)] : [])),
      ...nextAfter(page),
    });
  }

  /** Returns the lineage of a task. */
  async lineage({ parameters: { id: taskId = "" }, call }: WireRequest) {
    const { root, text, mermaid, truncated } = await this.#clients.messages.traceLineage(
      { taskId },
      call.asCaller,
    );
    if (root === undefined)
      throw new DeputeError(ErrorReason.INTERNAL, "a service answered without its message");
    return { text, mermaid, document: { ...lineageDocument(root), truncated } };
  }

  /** Returns a page of the agents' manifests. Omits agents without a manifest. */
  async manifests({ query, call }: WireRequest): Promise<Answer> {
    const request = { pageSize: wholeNumber(query, "limit", 1000), pageToken: query.get("cursor") ?? "" };
    const page = await this.#clients.agents.listAgents(request, call.asCaller);
    return json({
      agents: page.agents.flatMap(({ manifest }) =>
        manifest ? [encode(AgentManifestSchema, manifest)] : [],
      ),
      ...(page.nextPageToken === "" ? {} : { next_cursor: page.nextPageToken }),
    });
  }

  async manifest({ parameters: { id = "" }, call }: WireRequest): Promise<Answer> {
    const { agent } = await this.#clients.agents.getAgent({ agentId: id }, call.asCaller);
    if (agent?.manifest !== undefined) {
      return json(encode(AgentManifestSchema, agent.manifest));
    }
    throw new DeputeError(ErrorReason.AGENT_NOT_FOUND, "the agent does not exist, or has no manifest", {
      metadata: { agent: id },
    });
  }

  /**
   * Registers an agent by its manifest. If the agent is already registered, its other fields are kept, except the name
   * of the version. The query parameter `principal` sets the agent's key. If it is absent, a new agent gets the
   * caller's key, as with RegisterAgent.
   */
  async register(wireRequest: WireRequest): Promise<Answer> {
    const { query, call } = wireRequest;
    const { id } = wireRequest.parameters;
    const manifest = this.#readManifest(documentOf(wireRequest.body));
    // The id of an instance is the id of its base agent, a colon and a suffix. An instance uses the base agent's
    // manifest, but is registered under the instance's own id.
    const agentId = id ?? manifest.id;
    if (agentId !== manifest.id && !agentId.startsWith(`${manifest.id}:`)) {
      throw invalid("/id", "must be the id in the address, or the id of its base agent");
    }
    const agent = await this.#recordOf(agentId, manifest, query.get("principal") ?? undefined, call);
    const requestId = keyOf(wireRequest) || randomUuid();
    const registered = await this.#clients.agents.registerAgent({ requestId, agent }, call.asCaller);
    return json(encode(AgentManifestSchema, registered.agent?.manifest ?? manifest), 201);
  }

  async #recordOf(
    id: string,
    manifest: AgentManifest,
    principal: string | undefined,
    call: WireCall,
  ): Promise<Agent> {
    const knownAgent = await this.#findAgent(id, call);
    const isInstance = id !== manifest.id;
    const record = knownAgent ?? create(AgentSchema, { id });
    return create(AgentSchema, {
      ...record,
      ...(principal === undefined ? {} : { principal }),
      // Clears the name of the version, because the name belongs to the previous registration.
      version: "",
      ...(isInstance ? {} : { manifest }),
    });
  }

  async #findAgent(id: string, call: WireCall): Promise<Agent | undefined> {
    try {
      return (await this.#clients.agents.getAgent({ agentId: id }, call.aside)).agent;
    } catch (thrown) {
      if (reasonOf(thrown) === ErrorReason.AGENT_NOT_FOUND) return undefined;
      throw thrown;
    }
  }

  /**
   * Returns a page of the oversight reviews of the caller, or of the reviewer that the request names. Without
   * `state`, only pending reviews are returned.
   */
  async reviews({ query, call }: WireRequest): Promise<Answer> {
    const state = query.get("state")?.toUpperCase() ?? "PENDING";
    if (!Object.hasOwn(ReviewState, state)) throw invalid("state", "must be a state of a review");
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

  async review({ parameters: { id = "" }, call }: WireRequest): Promise<Answer> {
    const { review } = await this.#clients.reviews.getReview({ reviewId: id }, call.asCaller);
    if (review === undefined) throw reviewNotFound(id);
    return json(reviewDocument(review));
  }

  /**
   * Decides a review: `{"decision": "approved", "comment": "..."}`. `reviewer` is required if the caller may act for
   * several reviewers.
   */
  async decide({ parameters: { id = "" }, body, call }: WireRequest): Promise<Answer> {
    const document = documentOf(body);
    if (!isObject(document)) throw invalid("", "must be an object");
    const { decision = "", comment = "", reviewer = "" } = document;
    const word = String(decision).toUpperCase();
    if (word === "UNSPECIFIED" || !Object.hasOwn(ReviewVerdict, word)) {
      throw invalid("/decision", "must be approved, changes_requested or rejected");
    }
    const verdict = ReviewVerdict[word as keyof typeof ReviewVerdict];
    const request = { reviewId: id, verdict, reason: String(comment), reviewer: String(reviewer) };
    const { review } = await this.#clients.reviews.decideReview(request, call.asCaller);
    if (review === undefined) throw reviewNotFound(id);
    return json(reviewDocument(review));
  }
}

function reviewNotFound(review: string): DeputeError {
  return new DeputeError(ErrorReason.REVIEW_NOT_FOUND, "the review does not exist", { metadata: { review } });
}

/** Returns the request id from the header `idempotency-key`; empty if the header is absent. */
function keyOf({ headers }: WireRequest): string {
  return String(headers["idempotency-key"] ?? "");
}

/** Returns the task and the sender of a message, if the document names them. */
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

/** Reads a whole number from the query; 0 if it is absent. Throws DeputeError INVALID_REQUEST. */
export function wholeNumber(query: URLSearchParams, name: string, max = Number.MAX_SAFE_INTEGER): number {
  const text = query.get(name) ?? "0";
  const value = Number(text);
  if (!/^\d{1,16}$/.test(text) || value > max) throw invalid(name, `must be a whole number up to ${max}`);
  return value;
}

/** Reads `true` or `false` from the query; false if it is absent. Throws DeputeError INVALID_REQUEST. */
function truth(query: URLSearchParams, name: string): boolean {
  const text = query.get(name) ?? "false";
  if (text !== "true" && text !== "false") throw invalid(name, "must be true or false");
  return text === "true";
}

/** Returns the member `next_after`, the sequence of the page's last message; an empty object for the last page. */
function nextAfter(page: {
  readonly messages: readonly { readonly sequence: bigint }[];
  readonly nextPageToken: string;
}): { next_after?: number } {
  const last = page.messages.at(-1);
  return page.nextPageToken === "" || last === undefined ? {} : { next_after: Number(last.sequence) };
}
