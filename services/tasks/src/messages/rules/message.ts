import type { Attachment } from "@depute/contracts/cap/v1/attachment_pb";
import type { CapMessage } from "@depute/contracts/cap/v1/message_pb";
import { invalid } from "@depute/core";

/** The content of a message, with its type. */
export type Kind = Exclude<CapMessage["kind"], { case: undefined }>;

/** The names that CAP gives to the kinds of messages. */
export const TYPES: Readonly<Record<Kind["case"], string>> = {
  message: "message",
  delegationNotice: "delegation_notice",
  errorResponse: "error_response",
  oversightInquiry: "oversight_inquiry",
  oversightDecision: "oversight_decision",
};

/** The names that CAP gives to the types of attachments. */
export const ATTACHMENTS: Readonly<Record<Exclude<Attachment["kind"]["case"], undefined>, string>> = {
  toolCallResult: "tool_call_result",
  file: "file",
  pythonObject: "python_object",
  textSnippet: "text_snippet",
};

/** The text and attachments of a message of any type. */
export interface Words {
  readonly text: string;
  readonly attachments: readonly Attachment[];
}

/** @throws DeputeError INVALID_REQUEST for a message without a kind */
export function kindOf({ kind }: CapMessage): Kind {
  if (kind.case === undefined) throw invalid("message", "must have a kind");
  return kind;
}

/** Returns the text and attachments of a message. */
export function wordsOf(kind: Kind): Words {
  switch (kind.case) {
    case "message":
      return { text: kind.value.content, attachments: kind.value.attachments?.values ?? [] };
    case "delegationNotice":
      return { text: kind.value.contextSummary, attachments: kind.value.attachments?.values ?? [] };
    case "oversightInquiry":
      return { text: kind.value.inquiry, attachments: kind.value.attachments?.values ?? [] };
    case "oversightDecision":
      return { text: kind.value.comment ?? "", attachments: kind.value.attachments?.values ?? [] };
    case "errorResponse":
      return { text: kind.value.errorMessage, attachments: [] };
  }
}
