import type { Column, Command } from "./command.ts";
import { AGENT, arg, document, text } from "./parameters.ts";

const RECEIPT_COLUMNS: readonly Column[] = [
  ["REQUEST", "requestId"],
  ["STATUS", "status", "enum:EXECUTION_STATUS_"],
  ["OFFER", "offerId"],
  ["SELLER", "sellerAgentId"],
  ["BUYER", "buyerAgentId"],
  ["AMOUNT", "financials.finalAmount", "number"],
  ["CURRENCY", "financials.currency"],
];
const RECEIPT_WIDE: readonly Column[] = [
  ["EXECUTION", "executionId"],
  ["RECEIPT", "receiptId"],
  ["ISSUED", "issuedAt"],
];
const receipt = { item: "receipt", columns: RECEIPT_COLUMNS, wide: RECEIPT_WIDE };
const REQUEST = arg("REQUEST", "requestId", "id of the execution's request");
const nested = (columns: readonly Column[]): Column[] =>
  columns.map(([heading, path, format = "text"]) => [heading, `receipt.${path}`, format]);

const SESSION_COLUMNS: readonly Column[] = [
  ["ID", "sessionId"],
  ["STATE", "state", "enum:SESSION_STATE_"],
  ["MESSAGES", "messageCount", "number"],
  ["PARTICIPANTS", "participants", "count"],
  ["UPDATED", "updatedAt"],
];
const session = { item: "session", columns: SESSION_COLUMNS, wide: [["LAST-HASH", "lastHash"]] as const };
const SESSION = arg("SESSION", "sessionId", "id of the session");
const ENTRY_COLUMNS: readonly Column[] = [
  ["ORDINAL", "ordinal", "number"],
  ["TIME", "receivedAt"],
  ["SENDER", "envelope.sender.agentId"],
  ["PERFORMATIVE", "envelope.performative", "enum:PERFORMATIVE_"],
  ["HASH", "envelope.integrity.hash"],
];

const KINDS = ["message", "delegationNotice", "errorResponse", "oversightInquiry", "oversightDecision"];
const inMessage = (field: string) => KINDS.map((kind) => `message.${kind}.${field}`).join("|");
const MESSAGE_COLUMNS: readonly Column[] = [
  ["SEQUENCE", "sequence"],
  ["TIME", "receiveTime", "time"],
  ["TASK", inMessage("taskId")],
  ["FROM", inMessage("senderId")],
  ["TO", inMessage("recipientId")],
  [
    "TEXT",
    "message.message.content|message.delegationNotice.contextSummary|message.errorResponse.errorMessage|message.oversightInquiry.inquiry|message.oversightDecision.comment",
  ],
];

export const EXCHANGE: readonly Command[] = [
  {
    path: "executions list",
    summary: "Lists executions of offers by their last receipt",
    details: "It needs --buyer or --seller.",
    remote: true,
    flags: {
      buyer: text("buyerAgentId", "executions of this buyer"),
      seller: text("sellerAgentId", "executions of this seller"),
    },
    example: "depute executions list --seller echo",
    call: {
      service: "executions",
      method: "listExecutions",
      list: true,
      shown: { ...receipt, item: "receipts" },
    },
  },
  {
    path: "executions describe",
    summary: "Shows an execution",
    remote: true,
    args: [REQUEST],
    example: "depute executions describe $REQUEST",
    notRun: "needs an execution",
    call: {
      service: "executions",
      method: "getExecution",
      describe: true,
      shown: { item: "execution", columns: nested(RECEIPT_COLUMNS) },
    },
  },
  {
    path: "executions create",
    summary: "Requests an execution of an offer",
    remote: true,
    flags: document("request", "members of agenta.delegation.v0.ExecutionRequest"),
    example: "depute executions create --file @request.json",
    notRun: "needs the named file",
    call: { service: "executions", method: "requestExecution", shown: receipt },
  },
  {
    path: "executions receipts",
    summary: "Lists the receipts of an execution",
    remote: true,
    args: [REQUEST],
    example: "depute executions receipts $REQUEST",
    notRun: "needs an execution",
    call: {
      service: "executions",
      method: "listReceipts",
      list: true,
      shown: {
        item: "receipts",
        columns: [["SEQUENCE", "sequence"], ...nested(RECEIPT_COLUMNS)],
        wide: nested(RECEIPT_WIDE),
      },
      stream: { method: "watchReceipts", item: "receipt", request: { sendStart: true } },
    },
  },
  {
    path: "executions approve",
    summary: "Approves the start of an execution",
    remote: true,
    args: [REQUEST],
    example: "depute executions approve $REQUEST",
    notRun: "needs an execution",
    call: { service: "executions", method: "approveExecution", shown: receipt },
  },
  {
    path: "executions cancel",
    summary: "Cancels an execution",
    remote: true,
    args: [REQUEST],
    flags: { reason: text("reason", "why") },
    example: "depute executions cancel $REQUEST",
    notRun: "needs an execution",
    call: { service: "executions", method: "cancelExecution", shown: receipt },
  },
  {
    path: "executions settlement",
    summary: "Shows the money of an execution",
    remote: true,
    args: [REQUEST],
    example: "depute executions settlement $REQUEST",
    notRun: "needs an execution",
    call: {
      service: "executions",
      method: "getSettlement",
      describe: true,
      shown: {
        item: "settlement",
        columns: [
          ["STATE", "state"],
          ["CURRENCY", "currency"],
          ["AMOUNT", "finalAmount"],
        ],
      },
    },
  },
  {
    path: "sessions list",
    summary: "Lists the ASP sessions of an agent",
    remote: true,
    flags: { agent: { ...text("agentId", "agent://DOMAIN/UNIT/NAME"), required: true } },
    example: "depute sessions list --agent agent://example.com/unit/echo",
    notRun: "needs an agent with a card of ASP",
    call: {
      service: "sessions",
      method: "listSessions",
      list: true,
      shown: { ...session, item: "sessions" },
    },
  },
  {
    path: "sessions describe",
    summary: "Shows an ASP session with its parties and objects",
    remote: true,
    args: [SESSION],
    example: "depute sessions describe $SESSION",
    notRun: "needs an ASP session",
    call: { service: "sessions", method: "getSession", describe: true, shown: session },
  },
  {
    path: "sessions messages",
    summary: "Lists the messages of an ASP session",
    remote: true,
    args: [SESSION],
    flags: { after: { type: "int", field: "afterSequence", help: "messages after this number" } },
    example: "depute sessions messages $SESSION",
    notRun: "needs an ASP session",
    call: {
      service: "sessions",
      method: "listMessages",
      list: true,
      shown: { item: "entries", columns: ENTRY_COLUMNS },
      stream: { method: "watchSession", item: "entry", request: { sendStart: true } },
    },
  },
  {
    path: "sessions export",
    summary: "Prints the sealed transcript of an ASP session as JSON",
    details: "`depute verify-transcript` verifies it offline.",
    remote: true,
    args: [SESSION],
    example: "depute sessions export $SESSION -o json > transcript.json",
    notRun: "needs an ASP session",
    call: {
      service: "sessions",
      method: "exportTranscript",
      describe: true,
      shown: {
        item: "transcript",
        columns: [
          ["SESSION", "sessionId"],
          ["STATE", "state", "enum:SESSION_STATE_"],
        ],
      },
    },
  },
  {
    path: "messages list",
    summary: "Lists the inbox of an agent",
    remote: true,
    args: [AGENT],
    flags: {
      after: { type: "int", field: "afterSequence", help: "messages after this number" },
      unacknowledged: {
        type: "bool",
        field: "unacknowledgedOnly",
        help: "only messages that are not acknowledged",
      },
    },
    example: "depute messages list echo",
    call: {
      service: "messages",
      method: "listInbox",
      list: true,
      shown: { item: "messages", columns: MESSAGE_COLUMNS, wide: [["ID", "messageId"]] },
      stream: { method: "watchInbox", item: "message", request: { sendStart: true } },
    },
  },
  {
    path: "messages conversation",
    summary: "Lists the messages about a task of CAP",
    remote: true,
    args: [arg("TASK", "taskId", "the task's id of CAP")],
    example: "depute messages conversation $CAP_TASK",
    notRun: "needs sent messages",
    call: {
      service: "messages",
      method: "listConversation",
      list: true,
      shown: { item: "messages", columns: MESSAGE_COLUMNS, wide: [["ID", "messageId"]] },
    },
  },
  {
    path: "messages create",
    summary: "Sends a message of CAP",
    remote: true,
    flags: document("message", "members of depute.tasks.v1.CapMessage"),
    example: "depute messages create --file @message.json",
    notRun: "needs the named file",
    call: {
      service: "messages",
      method: "sendMessage",
      shown: {
        item: "",
        columns: [
          ["ID", "messageId"],
          ["EFFECT", "effect", "enum:MESSAGE_EFFECT_"],
          ["STATUS", "status", "enum:TASK_STATUS_"],
          ["ERROR", "errorMessage"],
        ],
      },
    },
  },
  {
    path: "messages acknowledge",
    summary: "Acknowledges the messages of an inbox up to a number",
    remote: true,
    args: [AGENT, { ...arg("SEQUENCE", "upToSequence", "number of the last message"), type: "int" }],
    example: "depute messages acknowledge echo 7",
    notRun: "needs sent messages",
    call: {
      service: "messages",
      method: "acknowledgeMessages",
      shown: { item: "", columns: [["UNACKNOWLEDGED", "unacknowledgedCount", "number"]] },
    },
  },
];
