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
import { fromConnectError, type Identity, messageDigest } from "@depute/service";
import type { ReadTx } from "@depute/store";
import type { TaskEngine } from "../../core/index.ts";
import { checkSize, foreignResult, identityOf, isBound, toolResultsOf } from "../rules/attachments.ts";
import { failureIn } from "../rules/error-actions.ts";
import { type Kind, kindOf, TYPES, wordsOf } from "../rules/message.ts";
import { isRole, type Participant } from "../rules/participant.ts";
import { failedSince, hasFailed, type Intent, permit } from "../rules/permit.ts";
import { rootIdOf } from "../rules/task-id.ts";
import {
  findSent,
  hasToolResult,
  hasWritten,
  insertSent,
  isParty,
  readMessage,
  type StoredMessage,
} from "../store/message-rows.ts";
import { factsOf, readKnown } from "../store/task-rows.ts";
import { decideFirst, inquireFirst } from "../work/decide.ts";
import { readFacts } from "../work/facts.ts";
import { type Prepared, perform, prepare } from "../work/intents.ts";
import { noteRefusal } from "../work/post.ts";
import type { CapContext } from "./context.ts";
import { participantNotFound } from "./participants.ts";

/** A message whose sender is known to be the caller's to speak for. */
export interface Sending {
  readonly message: CapMessage;
  readonly kind: Kind;
  readonly sender: Participant;
  readonly recipient: Participant;
  readonly identity: Identity;
  readonly context: HandlerContext;
}

/**
 * Sends a message: what it means is done, and it is delivered, in one transaction. What has to be asked of other services
 * is asked before; what the rules say is looked at again within.
 *
 * @throws DeputeError every refusal with the metadata `error_code`
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
    const known = await store.read((tx) => answered(tx, engine, senderId, once));
    if (known !== undefined) return known;
    const recipient = await findRecipient(cap, recipientId, sender, rootIdOf(kind.value.taskId), context);
    return await deliver(cap, { message, kind, sender, recipient, identity, context }, once);
  } catch (thrown) {
    const refusal = fromConnectError(thrown);
    if (refusal.reason !== ErrorReason.INTERNAL) {
      const noted = { errorCode: capCodeOf(refusal), reason: refusal.message };
      await store.write((tx) => noteRefusal(tx, cap, message, noted));
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
      const known = await answered(tx, cap.engine, sender.id, once);
      if (known !== undefined) return known;
      const now = await look(tx);
      // Somebody else was first, and what was asked of others is not what is to be done now.
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

/** What makes a call idempotent: its request id, or for a delegation its task and all that it says. */
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
 * The answer that was given to the same call before.
 *
 * @throws DeputeError REQUEST_ID_REUSED; TASK_STATE_CONFLICT for a notice without a request id whose task has failed
 */
async function answered(
  tx: ReadTx,
  engine: TaskEngine,
  sender: string,
  { requestId, digest, isByTask }: Once,
): Promise<SendMessageResponse | undefined> {
  const known = requestId === "" ? undefined : await findSent(tx, sender, requestId);
  if (known === undefined) return undefined;
  if (known.digest !== digest) {
    throw requestIdReused(requestId.slice(2), "message");
  }
  const stored = await readMessage(tx, known.message_id);
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
  const known = hasPart ? await readKnown(tx, engine, taskId) : undefined;
  const task = known?.record.task;
  // A replay of a notice tells its delegator how the task has failed since.
  const hasEnded = type === TYPES.delegationNotice && task !== undefined && hasFailed(task.status);
  return create(SendMessageResponseSchema, {
    messageId,
    receiveTime: toTimestamp(receiveMs),
    effect,
    engineTaskId: known?.cap.taskId ?? "",
    status: task?.status ?? TaskStatus.UNSPECIFIED,
    ...(hasEnded && failureIn(task)),
  });
}

/** A participant that wrote to the sender can be answered, whether or not the registry lets the sender find it. */
async function findRecipient(
  { participants, engine }: CapContext,
  id: string,
  sender: Participant,
  rootId: string,
  context: HandlerContext,
): Promise<Participant> {
  const found = await participants.find(id, sender.principal, context);
  if (found !== undefined) return found;
  const isKnown = await engine.store.read(
    async (tx) =>
      ((await isParty(tx, rootId, id)) && (await isParty(tx, rootId, sender.id))) ||
      (await hasWritten(tx, rootId, id, sender.id)),
  );
  const hidden = isKnown ? await participants.find(id, "", context) : undefined;
  if (hidden === undefined) throw participantNotFound(id);
  return hidden;
}

/** Results of tools are the sender's own by its bindings, or were seen in this lineage. (CAP "MCP Integration") */
async function requireOwnResults(tx: ReadTx, { kind, sender }: Sending, intent: Intent): Promise<void> {
  const rootId = rootIdOf(kind.value.taskId);
  const fromOutside = intent.does === "say" && intent.fromOutside === true;
  for (const result of toolResultsOf(wordsOf(kind))) {
    if (isBound(sender.manifest, result)) continue;
    const wasSeen = !fromOutside && (await hasToolResult(tx, rootId, sha256Hex(identityOf(result))));
    if (!wasSeen) throw foreignResult(result, sender.id);
  }
}

/** Tells messages apart by what they say. What a sender claims of the time may differ when it sends again. */
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
  return new DeputeError(ErrorReason.TASK_STATE_CONFLICT, "the task has changed meanwhile; send again", {
    metadata: { task: value.taskId, from: "", to: "" },
  });
}
