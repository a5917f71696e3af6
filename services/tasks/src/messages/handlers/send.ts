import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { type CapMessage, CapMessageSchema } from "@depute/contracts/cap/v1/message_pb";
import {
  type SendMessageRequest,
  type SendMessageResponse,
  SendMessageResponseSchema,
} from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { capCodeOf, DeputeError, ErrorReason, invalid, requestIdReused, toTimestamp } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { fromConnectError, messageDigest } from "@depute/service";
import type { ReadTx } from "@depute/store";
import type { TaskEngine } from "../../core/index.ts";
import { checkSize, foreignResult, identityOf, isBound, toolResultsOf } from "../rules/attachments.ts";
import { failureIn } from "../rules/error-actions.ts";
import { type Kind, kindOf, TYPES, wordsOf } from "../rules/message.ts";
import { isRole, type Participant } from "../rules/participant.ts";
import { failedSince, hasFailed, type Intent, permit } from "../rules/permit.ts";
import { rootIdOf } from "../rules/task-id.ts";
import { hasToolResult, isParty } from "../store/lineage-rows.ts";
import { hasWritten, readMessage, type StoredMessage } from "../store/message-rows.ts";
import { findSent, insertSent } from "../store/sent-rows.ts";
import { factsOf, readKnown } from "../store/task-rows.ts";
import type { CapContext } from "../work/context.ts";
import { decideFirst, inquireFirst } from "../work/decide.ts";
import { readFacts } from "../work/facts.ts";
import { type Prepared, perform, prepare } from "../work/intents.ts";
import { participantNotFound } from "../work/participants.ts";
import { noteRefusal } from "../work/post.ts";
import type { Sending } from "../work/sending.ts";

/**
 * Sends a message. One transaction commits the message's effect and its delivery. The function calls other services
 * before the transaction, which then checks the rules again.
 *
 * @throws DeputeError for each refusal, with CAP's code in the metadata `error_code`
 */
export async function sendMessage(
  cap: CapContext,
  request: SendMessageRequest,
  context: HandlerContext,
): Promise<SendMessageResponse> {
  try {
    return await send(cap, request, context);
  } catch (thrown) {
    throw withCode(thrown);
  }
}

async function send(
  cap: CapContext,
  { requestId, message }: SendMessageRequest,
  context: HandlerContext,
): Promise<SendMessageResponse> {
  if (message === undefined) throw invalid("message", "is required");
  const { participants, engine } = cap;
  const { store } = engine;
  checkSize(message);
  const kind = kindOf(message);
  const { senderId, recipientId } = kind.value;
  const identity = await participants.identify(
    context,
    kind.case === "delegationNotice" ? recipientId : undefined,
  );
  const sender = await participants.self(senderId, identity, context);
  const once = onceOf(kind, requestId, digestOf(message));
  try {
    const answer = await store.read((tx) => answered(tx, engine, senderId, once));
    if (answer !== undefined) return answer;
    const recipient = await findRecipient(cap, recipientId, sender, rootIdOf(kind.value.taskId), context);
    return await deliver(cap, { message, kind, sender, recipient, identity, context }, once);
  } catch (thrown) {
    const refusal = fromConnectError(thrown);
    if (refusal.reason !== ErrorReason.INTERNAL) {
      const refusalNote = { errorCode: capCodeOf(refusal), reason: refusal.message };
      await store.write((tx) => noteRefusal(tx, cap, message, refusalNote));
    }
    throw thrown;
  }
}

async function deliver(cap: CapContext, sending: Sending, once: Once): Promise<SendMessageResponse> {
  const { message, sender } = sending;
  const { store } = cap.engine;
  const look = async (tx: ReadTx) => permit(message, await readFacts(tx, message, cap));
  const intent = await store.read(async (tx) => {
    const permitted = await look(tx);
    await requireOwnResults(tx, sending, permitted);
    return permitted;
  });
  const prepared = await prepare(cap, sending, intent);
  const write = (more: Prepared = prepared) =>
    store.write(async (tx) => {
      const earlierAnswer = await answered(tx, cap.engine, sender.id, once);
      if (earlierAnswer !== undefined) return earlierAnswer;
      const now = await look(tx);
      // After the first check of the rules, another message has changed the state. The other services answered for a
      // different effect, so their answers no longer apply.
      if (now.does !== intent.does) throw changed(sending);
      const stored = await perform(tx, cap, sending, now, more);
      if (once.requestId !== "")
        await insertSent(tx, sender.id, once.requestId, once.digest, stored.messageId);
      return answerOf(tx, cap.engine, stored);
    });
  if (intent.does === "decide") return decideFirst(cap, sending, intent, () => write());
  if (intent.does === "inquire") return inquireFirst(cap, sending, intent, (inquiry) => write({ inquiry }));
  return write();
}

/**
 * Identifies a repeated call: by the request id, or for a delegation without a request id, by the task and the whole
 * content.
 */
interface Once {
  readonly requestId: string;
  readonly digest: string;
  readonly isByTask: boolean;
}

function onceOf(kind: Kind, requestId: string, digest: string): Once {
  if (requestId !== "") return { requestId: `r/${requestId}`, digest, isByTask: false };
  const isByTask = kind.case === "delegationNotice";
  return { requestId: isByTask ? `t/${kind.value.taskId}/${digest}` : "", digest, isByTask };
}

/**
 * Returns the stored response of an identical earlier call; undefined for none.
 *
 * @throws DeputeError REQUEST_ID_REUSED; TASK_STATE_CONFLICT for a notice without a request id, if the notice's task
 * has ended without a result
 */
async function answered(
  tx: ReadTx,
  engine: TaskEngine,
  sender: string,
  { requestId, digest, isByTask }: Once,
): Promise<SendMessageResponse | undefined> {
  const earlierMessage = requestId === "" ? undefined : await findSent(tx, sender, requestId);
  if (earlierMessage === undefined) return undefined;
  if (earlierMessage.digest !== digest) {
    throw requestIdReused(requestId.slice(2), "message");
  }
  const stored = await readMessage(tx, earlierMessage.message_id);
  const task = isByTask && stored !== undefined ? await readKnown(tx, engine, stored.taskId) : undefined;
  if (task !== undefined && hasFailed(task.record.task.status)) {
    throw failedSince(factsOf(task), failureIn(task.record.task));
  }
  return stored && answerOf(tx, engine, stored);
}

async function answerOf(
  tx: ReadTx,
  engine: TaskEngine,
  { messageId, receiveMs, effect, type, taskId, rootId, senderId }: StoredMessage,
) {
  const hasPart = isRole(senderId) || (await isParty(tx, rootId, senderId));
  const knownPart = hasPart ? await readKnown(tx, engine, taskId) : undefined;
  const task = knownPart?.record.task;
  // The response to a repeated notice reports that the task has failed since the first notice.
  const hasEnded = type === TYPES.delegationNotice && task !== undefined && hasFailed(task.status);
  return create(SendMessageResponseSchema, {
    messageId,
    receiveTime: toTimestamp(receiveMs),
    effect,
    engineTaskId: knownPart?.cap.taskId ?? "",
    status: task?.status ?? TaskStatus.UNSPECIFIED,
    ...(hasEnded && failureIn(task)),
  });
}

/**
 * Finds the recipient. The sender finds a recipient that the registry hides only in two cases: sender and recipient
 * take part in the lineage, or the recipient has already written to the sender.
 *
 * @throws DeputeError AGENT_NOT_FOUND, DEPENDENCY_UNAVAILABLE
 */
async function findRecipient(
  { participants, engine }: CapContext,
  id: string,
  sender: Participant,
  rootId: string,
  context: HandlerContext,
): Promise<Participant> {
  const foundRecipient = await participants.find(id, sender.principal, context);
  if (foundRecipient !== undefined) return foundRecipient;
  const isKnown = await engine.store.read(
    async (tx) =>
      ((await isParty(tx, rootId, id)) && (await isParty(tx, rootId, sender.id))) ||
      (await hasWritten(tx, rootId, id, sender.id)),
  );
  const hidden = isKnown ? await participants.find(id, "", context) : undefined;
  if (hidden === undefined) throw participantNotFound(id);
  return hidden;
}

/**
 * Requires that the sender may pass on the attached tool results. Either the tool bindings of the sender's manifest
 * allow the tool, or the lineage already contains the result. (CAP "MCP Integration")
 */
async function requireOwnResults(tx: ReadTx, { kind, sender }: Sending, intent: Intent): Promise<void> {
  const rootId = rootIdOf(kind.value.taskId);
  const fromOutside = intent.does === "say" && intent.fromOutside === true;
  for (const result of toolResultsOf(wordsOf(kind))) {
    if (isBound(sender.manifest, result)) continue;
    const wasSeen = !fromOutside && (await hasToolResult(tx, rootId, sha256Hex(identityOf(result))));
    if (!wasSeen) throw foreignResult(result, sender.id);
  }
}

/**
 * Computes the digest by which the platform detects a repeated message. The digest omits the message's timestamp, which
 * may differ in a retry.
 */
function digestOf({ kind }: CapMessage): string {
  if (kind.case === undefined) return "";
  const { timestamp: _, ...value } = kind.value;
  return messageDigest(
    CapMessageSchema,
    create(CapMessageSchema, { kind: { case: kind.case, value } as Kind }),
  );
}

function withCode(thrown: unknown): unknown {
  const refusal = fromConnectError(thrown);
  if (refusal.reason === ErrorReason.INTERNAL) return thrown;
  return refusal.with({ metadata: { error_code: String(capCodeOf(refusal)) }, cause: thrown });
}

function changed({ kind: { value } }: Sending): DeputeError {
  return new DeputeError(
    ErrorReason.TASK_STATE_CONFLICT,
    "the task has changed in the meantime; send the message again",
    {
      metadata: { task: value.taskId, from: "", to: "" },
    },
  );
}
