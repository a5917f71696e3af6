import { useQuery } from "@connectrpc/connect-query";
import {
  type LineageMessage,
  type LineageTask,
  MessageEffect,
  MessageService,
} from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { SessionService } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import { Card, Fact, Facts, Time } from "../../parts/facts.tsx";
import { Id, Line, Text } from "../../parts/text.tsx";
import { enumWord } from "../../rules/enum-word.ts";
import { causesOf } from "../../rules/lineage.ts";
import { hashOf } from "../../rules/route.ts";

/**
 * Milliseconds between two reads of the task's CAP messages. If the first read fails, e.g. because there are none,
 * there is no further read.
 */
const READ_MS = 3_000;

/** Maximum number of messages that the card lists. The card lists the newest messages. */
const MAX_MESSAGES = 50;

/**
 * Shows the origin of a task: its root and parent tasks, its ASP session, its Agenta execution, its A2A conversation
 * and its CAP messages. Shows nothing if there are none.
 */
export function Lineage({ task }: { readonly task: Task }) {
  const { executionRequestId, sessionId, capTaskId, isConversation } = causesOf(task);
  const once = { retry: false, staleTime: Number.POSITIVE_INFINITY };
  const session = useQuery(
    SessionService.method.getSession,
    { sessionId },
    { ...once, enabled: sessionId !== "" },
  );
  const trace = useQuery(
    MessageService.method.traceLineage,
    { taskId: capTaskId },
    {
      retry: false,
      enabled: capTaskId !== "",
      refetchInterval: ({ state }) => (state.data === undefined ? false : READ_MS),
    },
  );
  // Selects the messages by Depute's task id, because a task of another principal may have the same CAP id.
  const messages = messagesOf(trace.data?.root, task.id);
  const { parentTaskId, rootTaskId } = task;
  const isRoot = parentTaskId === "";
  const hasSession = session.data?.session !== undefined;
  if (isRoot && !hasSession && executionRequestId === "" && messages.length === 0 && !isConversation)
    return null;
  return (
    <Card title="Lineage">
      <Facts>
        <Fact name="Root task">
          {!isRoot && (
            <a href={hashOf({ page: "tasks", id: rootTaskId })}>
              <Id value={rootTaskId} max={40} />
            </a>
          )}
        </Fact>
        <Fact name="Parent task">
          {!isRoot && (
            <a href={hashOf({ page: "tasks", id: parentTaskId })}>
              <Id value={parentTaskId} max={40} />
            </a>
          )}
        </Fact>
        <Fact name="Session (ASP)">
          {hasSession && (
            <a href={hashOf({ page: "sessions", id: sessionId })}>
              <Id value={sessionId} max={40} />
            </a>
          )}
        </Fact>
        <Fact name="Execution (Agenta)">
          {executionRequestId !== "" && (
            <a href={hashOf({ page: "executions", id: executionRequestId })}>
              <Text value={executionRequestId} />
            </a>
          )}
        </Fact>
        <Fact name="Conversation (A2A)">{isConversation && "The task began with a message."}</Fact>
      </Facts>
      {messages.length > 0 && <Messages messages={messages} />}
    </Card>
  );
}

function Messages({ messages }: { readonly messages: readonly LineageMessage[] }) {
  return (
    <>
      <h3>Messages (CAP)</h3>
      <ol className="plain-list">
        {messages.slice(-MAX_MESSAGES).map((message) => (
          <li key={String(message.sequence)}>
            <div className="moment-head">
              <span>
                <Text value={message.senderId} /> → <Text value={message.recipientId} />
              </span>
              <span className="quiet small-text">
                {enumWord(MessageEffect, message.effect)} · <Time value={message.receiveTime} />
              </span>
            </div>
            <Line value={message.excerpt} max={200} />
          </li>
        ))}
      </ol>
    </>
  );
}

/** Returns the messages of one task in a lineage; none if the lineage does not contain the task. */
function messagesOf(root: LineageTask | undefined, taskId: string): readonly LineageMessage[] {
  const open = root === undefined ? [] : [root];
  for (let each = open.pop(); each !== undefined; each = open.pop()) {
    if (each.engineTaskId === taskId) return each.messages;
    open.push(...each.tasks);
  }
  return [];
}
