import { create } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { type CapMessage, CapMessageSchema } from "@depute/contracts/cap/v1/message_pb";
import { type InboxMessage, MessageService } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { createDirectTransport } from "@depute/service";
import { type Cap, openCap } from "../messages/index.ts";
import { kindOf, wordsOf } from "../messages/rules/message.ts";
import { asCaller, type Bench, DAY_MS, openBench } from "./bench.ts";

/**
 * The principals of the participants: user, orchestrator, planner, analyst, the analyst's overseer, and an agent
 * outside the work.
 */
const KEYS: Readonly<Record<string, string>> = {
  user: "the-user",
  orchestrator: "the-orchestrator",
  pm: `${"P".repeat(42)}A`,
  analyst: `${"N".repeat(42)}A`,
  qa: `${"Q".repeat(42)}A`,
  stranger: `${"S".repeat(42)}A`,
};

/** Opens the test bench of `openBench` with CAP's messages module. Its clock moves only when the test advances it. */
export async function openCapBench() {
  const bench = await openBench();
  const { agents } = bench.fakes;
  const agent = (id: string, mayDelegateTo: string[], overseer?: string) =>
    agents.set(id, { principal: KEYS[id] ?? "", active: true, mayDelegateTo, ...(overseer && { overseer }) });
  agent("orchestrator", ["pm", "analyst"]);
  agent("pm", ["analyst"]);
  agent("analyst", ["qa", "pm"], "qa");
  agent("qa", []);
  agent("stranger", []);
  let opened = open(bench);
  return {
    bench,
    get cap(): Cap {
      return opened.cap;
    },
    get calls(): Client<typeof MessageService> {
      return opened.calls;
    },
    asPerson: (id: string) => asCaller(KEYS[id] ?? id),
    /** Sends a message with the credentials of the sender that it names. */
    send: (kind: CapMessage["kind"], requestId = "") => {
      const senderId = kind.value?.senderId ?? "";
      const message = create(CapMessageSchema, { kind } as CapMessage);
      return opened.calls.sendMessage({ requestId, message }, asCaller(KEYS[senderId] ?? senderId));
    },
    inbox: async (id: string): Promise<InboxMessage[]> =>
      (await opened.calls.listInbox({ agentId: id, pageSize: 1000 }, asCaller(KEYS[id] ?? id))).messages,
    async reopen() {
      await opened.cap.close();
      await bench.reopen();
      opened = open(bench);
    },
    async close() {
      await opened.cap.close();
      await bench.close();
    },
  };
}

export type CapBench = Awaited<ReturnType<typeof openCapBench>>;

function open({ runtime, deps }: Bench) {
  const cap = openCap(deps, runtime.engine, {
    tasksPollInterval: 1000,
    tasksRetention: DAY_MS,
    orchestratorPrincipals: [KEYS.orchestrator ?? ""],
    userPrincipals: [KEYS.user ?? ""],
    capPlainApproval: false,
    capRefuseHeldResults: false,
    capTaskTimeout: DAY_MS,
    capErrorActions: [],
  });
  cap.start();
  const transport = createDirectTransport({ clock: deps.clock, timers: deps.timers, routes: cap.routes });
  return { cap, calls: createClient(MessageService, transport) };
}

/** Writes a message of an inbox on one line, for example `message pm -> analyst T1: text`. */
export function line({ message }: InboxMessage): string {
  if (message === undefined) return "";
  const kind = kindOf(message);
  const { taskId, senderId, recipientId } = kind.value;
  const code = kind.case === "errorResponse" ? ` ${kind.value.errorCode}` : "";
  return `${kind.case}${code} ${senderId} -> ${recipientId} ${taskId}: ${wordsOf(kind).text}`;
}

/** Returns a delegation_notice for a task. */
export function notice(
  taskId: string,
  senderId: string,
  recipientId: string,
  contextSummary = `do ${taskId}`,
) {
  return {
    case: "delegationNotice",
    value: { taskId, senderId, recipientId, contextSummary },
  } as CapMessage["kind"];
}

/** Returns a plain message. */
export function words(
  taskId: string,
  senderId: string,
  recipientId: string,
  content: string,
  more: { completesTask?: boolean } = {},
) {
  return {
    case: "message",
    value: { taskId, senderId, recipientId, content, ...more },
  } as CapMessage["kind"];
}
