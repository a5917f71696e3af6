import { create, fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import type { CallOptions } from "@connectrpc/connect";
import {
  AgentCardForm,
  type GetAgentCardResponse,
} from "@depute/contracts/depute/registry/v1/agent_service_pb";
import {
  type Task as A2aTask,
  type CancelTaskRequest,
  type GetTaskRequest,
  type ListTasksRequest,
  type ListTasksResponse,
  ListTasksResponseSchema,
  type Message,
  Role,
  type SendMessageRequest,
  type SendMessageResponse,
  SendMessageResponseSchema,
  type StreamResponse,
  type SubscribeToTaskRequest,
  TaskState,
} from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { A2A_EXTENSIONS, DeputeError, ErrorReason, invalid, randomUuid } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { ownHeaders } from "@depute/service";
import {
  createdTask,
  inModes,
  isInterrupted,
  isTerminal,
  statusesOf,
  toA2aTask,
  toConversation,
  withHistory,
} from "@depute/wire/a2a";
import type { Clients } from "../../edge/clients.ts";
import { renameFields } from "../../edge/fault.ts";
import { firstOf, leavable, type StreamItem } from "../../edge/started-stream.ts";
import type { WireCall } from "../../edge/wire-call.ts";
import { type A2aCall, agentOf } from "./call.ts";
import { actionOf, draftFieldsOf, type SuspensionAction } from "./extension-data.ts";
import { descriptionOf, inputOf } from "./parts.ts";
import { type Begun, settled, stateIn, streamOf, withModes } from "./stream.ts";
import { TaskMetadata } from "./task-metadata.ts";
import { A2aWebhooks } from "./webhooks.ts";

/** Timeout of a message that waits for its task, in milliseconds: 1 hour. A caller may choose a shorter one. */
export const SEND_TIMEOUT_MS = 3_600_000;

/** The dependencies of the methods. */
export interface A2aContext {
  readonly clients: Pick<Clients, "agents" | "conversations" | "delegations" | "tasks">;
  /** Whether callers have to present credentials. */
  readonly needsCredentials: boolean;
}

/** Implements A2A's methods on decoded messages, for all bindings: JSON-RPC, HTTP+JSON and gRPC. (A2A 3.1) */
export class A2aMethods {
  /** Implements A2A's methods for webhooks. */
  readonly webhooks: A2aWebhooks;
  readonly #context: A2aContext;
  readonly #metadata: TaskMetadata;

  constructor(context: A2aContext) {
    this.#context = context;
    this.webhooks = new A2aWebhooks(context.clients);
    this.#metadata = new TaskMetadata(context.clients);
  }

  /**
   * SendMessage. (A2A 3.1.1) If the caller disconnects, the task continues.
   *
   * @throws DeputeError INVALID_REQUEST; the errors of the tasks service, such as AGENT_NOT_FOUND, TASK_NOT_FOUND and
   * TASK_STATE_CONFLICT; the errors of A2aWebhooks.check and A2aWebhooks.attach
   */
  async send(request: SendMessageRequest, a2aCall: A2aCall): Promise<SendMessageResponse> {
    const {
      returnImmediately = false,
      historyLength,
      acceptedOutputModes = [],
    } = request.configuration ?? {};
    const begun = await this.#begin(request, a2aCall);
    const { task, reply } = returnImmediately ? { task: begun.task } : await settled(begun);
    await begun.events.return?.();
    // A client that names the task, or has a webhook for the task, already knows that the task exists. So the answer
    // contains the task.
    const knowsTask = request.message?.taskId !== "" || request.configuration?.taskPushNotificationConfig;
    if (reply !== undefined && !knowsTask) {
      const value = inModes(reply, acceptedOutputModes);
      return create(SendMessageResponseSchema, { payload: { case: "message", value } });
    }
    const shown = withModes(withHistory(task, historyLength), acceptedOutputModes);
    const value = await this.#metadata.addTo(shown, a2aCall);
    return create(SendMessageResponseSchema, { payload: { case: "task", value } });
  }

  /**
   * SendStreamingMessage. (A2A 3.1.2) The task is created before the stream is returned. So a refusal is thrown before
   * the answer begins.
   */
  async stream(request: SendMessageRequest, a2aCall: A2aCall): Promise<AsyncGenerator<StreamResponse>> {
    const begun = await this.#begin(request, a2aCall);
    const { historyLength, acceptedOutputModes } = request.configuration ?? {};
    return streamOf(begun, { historyLength, modes: acceptedOutputModes }, a2aCall, this.#metadata);
  }

  /** GetTask. (A2A 3.1.3) */
  async getTask(request: GetTaskRequest, a2aCall: A2aCall): Promise<A2aTask> {
    const { id, historyLength } = request;
    const agentId = agentOf(request, a2aCall);
    const { conversation, task } = await this.#read(id, agentId, historyLength, a2aCall.call.asCaller);
    return this.#metadata.addTo(toConversation(conversation), a2aCall, task);
  }

  /** ListTasks. (A2A 3.1.4) */
  async listTasks(request: ListTasksRequest, a2aCall: A2aCall): Promise<ListTasksResponse> {
    const { contextId, status, pageSize = DEFAULT_PAGE_SIZE, pageToken, historyLength = 0 } = request;
    const { statusTimestampAfter: updatedFrom, includeArtifacts = false } = request;
    const { conversations } = this.#context.clients;
    const agentId = agentOf(request, a2aCall);
    const statuses = status === TaskState.UNSPECIFIED ? [] : statusesOf(status);
    // No task can have this state, so the list is empty.
    if (status !== TaskState.UNSPECIFIED && statuses.length === 0) {
      return create(ListTasksResponseSchema, { pageSize });
    }
    const listed = {
      agentId,
      correlationId: contextId,
      statuses,
      // In the tasks service, one status covers both waits: for input and for authorization. So a second filter
      // distinguishes the two.
      ...(isInterrupted(status) && { awaitsAuthorization: status === TaskState.AUTH_REQUIRED }),
      ...(updatedFrom && { updatedFrom }),
      pageSize,
      pageToken,
      maxMessages: Math.min(historyLength, MAX_HISTORY),
      includeOutputs: includeArtifacts,
    };
    const page = await conversations.listConversations(listed, a2aCall.call.asCaller);
    const { nextPageToken, totalSize } = page;
    const tasks = await Promise.all(
      page.conversations.map((each) => this.#metadata.addTo(toConversation(each), a2aCall, each.task)),
    );
    return create(ListTasksResponseSchema, { tasks, nextPageToken, pageSize, totalSize });
  }

  /** CancelTask. (A2A 3.1.5) A repeated call returns the cancelled task. */
  async cancelTask(request: CancelTaskRequest, a2aCall: A2aCall): Promise<A2aTask> {
    const { tasks } = this.#context.clients;
    const agentId = agentOf(request, a2aCall);
    const { task } = await tasks.cancelTask({ taskId: request.id, agentId }, a2aCall.call.asCaller);
    if (task === undefined) throw new Error("CancelTask answered without a task");
    return this.#metadata.addTo(toA2aTask(task), a2aCall, task);
  }

  /**
   * SubscribeToTask. (A2A 3.1.6) The task is read before the stream is returned, so a refusal is thrown before the
   * answer begins.
   */
  async subscribe(
    request: SubscribeToTaskRequest,
    a2aCall: A2aCall,
  ): Promise<AsyncGenerator<StreamResponse>> {
    const agentId = agentOf(request, a2aCall);
    const { conversation, task } = await this.#read(request.id, agentId, undefined, a2aCall.call.asCaller);
    const { afterSequence = task.lastSequence } = a2aCall;
    // The stream will send the chunks of artifacts after this sequence, so the snapshot must not contain them.
    // Otherwise a client would append a chunk twice.
    const now = toConversation(conversation, afterSequence);
    // An ended task gets no new events. So only a client that asks for earlier events may still subscribe.
    if (isTerminal(stateIn(now)) && afterSequence >= task.lastSequence) {
      throw new DeputeError(ErrorReason.OPERATION_UNSUPPORTED, "the task has ended: read it with GetTask");
    }
    const events = this.#follow(task.id, afterSequence, a2aCall.call);
    return streamOf({ task: now, sequence: task.lastSequence, events }, {}, a2aCall, this.#metadata);
  }

  /**
   * Returns the card for the well-known address. A client without credentials can read only the cards of public agents.
   * (A2A 8.2)
   */
  publicCard(agentId: string, { call, hasCredentials }: A2aCall): Promise<GetAgentCardResponse> {
    const { clients, needsCredentials } = this.#context;
    if (!needsCredentials || hasCredentials) return this.card(agentId, call);
    const ownOptions = { headers: ownHeaders(call.requestId), signal: call.signal };
    return clients.agents.getAgentCard({ agentId, form: AgentCardForm.A2A_1_0, viewer: ANYONE }, ownOptions);
  }

  /** Returns the card of an agent if the caller may see the agent. (A2A 8.2) */
  card(agentId: string, call: WireCall): Promise<GetAgentCardResponse> {
    return this.#context.clients.agents.getAgentCard({ agentId, form: AgentCardForm.A2A_1_0 }, call.asCaller);
  }

  /**
   * GetExtendedAgentCard: the card for callers with credentials. (A2A 3.1.11)
   *
   * @throws DeputeError OPERATION_UNSUPPORTED if the platform requires no credentials, UNAUTHENTICATED; the errors of
   * agentOf and AgentService.GetAgentCard
   */
  extendedCard(request: { readonly tenant: string }, a2aCall: A2aCall): Promise<GetAgentCardResponse> {
    if (!this.#context.needsCredentials) {
      const detail = "the agent has no extended card: read the card at /.well-known/agent-card.json";
      throw new DeputeError(ErrorReason.OPERATION_UNSUPPORTED, detail);
    }
    if (!a2aCall.hasCredentials) {
      throw new DeputeError(ErrorReason.UNAUTHENTICATED, "the extended card needs credentials: send them");
    }
    return this.card(agentOf(request, a2aCall), a2aCall.call);
  }

  /** Reads a task with its newest messages: at most `length` messages, and never more than MAX_HISTORY. */
  async #read(taskId: string, agentId: string, length: number | undefined, options: CallOptions) {
    const { conversations } = this.#context.clients;
    const maxMessages = Math.min(length ?? MAX_HISTORY, MAX_HISTORY);
    const asked = { taskId, agentId, maxMessages, maxPartials: MAX_PARTIALS };
    const { conversation } = await conversations.getConversation(asked, options);
    if (conversation?.task === undefined) throw new Error("GetConversation answered without a task");
    return { conversation, task: conversation.task };
  }

  /**
   * If the message names a task, answers the open question of the task, or suspends or resumes the task by the
   * message's extension data. Otherwise creates a task for the message.
   */
  async #begin(request: SendMessageRequest, a2aCall: A2aCall): Promise<Begun> {
    const { message } = request;
    if (message === undefined) throw new Error("a valid request has a message");
    if (message.role !== Role.USER) throw invalid("message.role", "must be ROLE_USER in a request");
    const agentId = agentOf(request, a2aCall);
    const webhook = request.configuration?.taskPushNotificationConfig;
    if (webhook !== undefined) await this.webhooks.check(webhook, a2aCall);
    const action = actionOf(message, a2aCall.extensions);
    const begun = await (message.taskId === ""
      ? this.#create(agentId, message, a2aCall)
      : action === undefined
        ? this.#answer(agentId, message, a2aCall)
        : this.#suspendOrResume(agentId, message, action, a2aCall));
    if (webhook === undefined) return begun;
    try {
      // The default id of the webhook is derived from the message's id. So a repeated message does not register a
      // second webhook.
      const id = webhook.id || sha256Hex(message.messageId).slice(0, MAX_WEBHOOK_ID);
      await this.webhooks.attach({ ...webhook, id, taskId: begun.task.id }, begun.sequence, a2aCall);
      return begun;
    } catch (thrown) {
      await begun.events.return?.();
      throw thrown;
    }
  }

  async #create(agentId: string, message: Message, a2aCall: A2aCall): Promise<Begun> {
    const { tasks } = this.#context.clients;
    const draft = {
      agentId,
      correlationId: message.contextId,
      description: descriptionOf(message),
      input: fromJson(ValueSchema, inputOf(message)),
      message,
      ...draftFieldsOf(message, a2aCall.extensions),
    };
    const delegated = { requestId: requestIdOf(agentId, message, a2aCall), draft };
    const begun = firstOf(
      leavable((options) => tasks.delegateTask(delegated, options), a2aCall.call.asCaller),
    );
    const { first, events } = await begun.catch((thrown: unknown) => {
      throw renameFields(thrown, FIELDS);
    });
    const event = first.done === true ? undefined : first.value.taskEvent;
    if (event === undefined) throw new Error("DelegateTask answered without an event");
    return { task: createdTask(event), sequence: event.sequence, events };
  }

  async #answer(agentId: string, message: Message, a2aCall: A2aCall): Promise<Begun> {
    const { tasks } = this.#context.clients;
    const { call } = a2aCall;
    const { taskId } = message;
    const input = fromJson(ValueSchema, inputOf(message));
    const request = { taskId, agentId, requestId: requestIdOf(agentId, message, a2aCall), input, message };
    await tasks.provideInput(request, call.asCaller).catch((thrown: unknown) => {
      throw renameFields(thrown, FIELDS);
    });
    const { conversation, task } = await this.#read(taskId, agentId, undefined, call.aside);
    const { lastSequence: sequence } = task;
    return { task: toConversation(conversation), sequence, events: this.#follow(taskId, sequence, call) };
  }

  /** Suspends the task that a message names, or resumes it. The text of the message becomes the reason. */
  async #suspendOrResume(
    agentId: string,
    message: Message,
    action: SuspensionAction,
    a2aCall: A2aCall,
  ): Promise<Begun> {
    const { tasks } = this.#context.clients;
    const { call } = a2aCall;
    const named = { taskId: message.taskId, agentId };
    if (action === "suspend") {
      const reason = descriptionOf(message).slice(0, MAX_REASON).toWellFormed();
      await tasks.suspendTask({ ...named, reason }, call.asCaller);
    } else {
      const requestId = requestIdOf(agentId, message, a2aCall);
      await tasks.resumeTask({ ...named, requestId }, call.asCaller);
    }
    const { conversation, task } = await this.#read(message.taskId, agentId, undefined, call.aside);
    const { lastSequence: sequence } = task;
    const events = this.#follow(task.id, sequence, call);
    return { task: toConversation(conversation), sequence, events };
  }

  /** Watches the events of a task after a sequence. Does not check whether the client may see the task. */
  #follow(taskId: string, afterSequence: bigint, { aside }: WireCall): AsyncIterator<StreamItem> {
    const { tasks } = this.#context.clients;
    return leavable((options) => tasks.watchTask({ taskId, afterSequence }, options), aside);
  }
}

/**
 * The principal for which the gateway reads if the client has no credentials. No real principal has this name, so only
 * public agents are visible.
 */
const ANYONE = "anonymous";

/**
 * Returns the request id for a message. If the client has activated the extension idempotent-send, the request id is
 * derived from the message's id. A repeated message then has no second effect. Otherwise the request id is random.
 */
function requestIdOf(agentId: string, { messageId }: Message, { extensions }: A2aCall): string {
  if (!extensions.has(A2A_EXTENSIONS.IDEMPOTENT_SEND.uri)) return randomUuid();
  return `a2a/${sha256Hex(JSON.stringify([agentId, messageId]))}`;
}

/** Number of characters of the webhook id that is derived from a message's id. */
const MAX_WEBHOOK_ID = 32;

/**
 * Maximum number of messages in an answer. A2A allows an agent to return fewer messages than the client requests. (A2A
 * 3.2.4)
 */
const MAX_HISTORY = 100;

/** Maximum number of preliminary results that an answer combines into artifacts. */
const MAX_PARTIALS = 100;

/** The size of a page if the request states none. (A2A 3.1.4) */
const DEFAULT_PAGE_SIZE = 50;

/** For each field in requests to the tasks service, the path in A2A's messages. Refusals name this path. */
const FIELDS = {
  "draft.input": "message.parts",
  "draft.message": "message",
  "draft.correlation_id": "message.context_id",
  "draft.agent_id": "tenant",
  input: "message.parts",
  "draft.spend": `message.metadata["${A2A_EXTENSIONS.BUDGETS.uri}"]`,
  "draft.contract_id": `message.metadata["${A2A_EXTENSIONS.VERIFIED_RESULTS.uri}"].contractId`,
  "draft.worker_token": `message.metadata["${A2A_EXTENSIONS.DELEGATED_AUTHORITY.uri}"].token`,
};

/** Maximum length of the reason for a suspension, in UTF-16 code units. */
const MAX_REASON = 1_000;
