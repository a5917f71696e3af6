import { create, fromJson, toJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { type Attachment, AttachmentSchema } from "@depute/contracts/cap/v1/attachment_pb";
import type { TaskOutput } from "@depute/contracts/depute/tasks/v1/task_pb";
import { isObject } from "@depute/core";
import { decode, encode } from "@depute/wire";
import type { Words } from "./message.ts";

/** Converts text and attachments to the form in which tasks store inputs and outputs. */
export function contentValue(content: string, attachments: readonly Attachment[]) {
  return fromJson(ValueSchema, {
    content,
    attachments: attachments.map((attachment) => encode(AttachmentSchema, attachment)),
  });
}

/** Returns the text and attachments of a result. Output that no message contained becomes one attachment. */
export function outputWords(output: TaskOutput | undefined): Words {
  const statement = saidIn(output?.full);
  if (statement !== undefined) return { text: statement.content, attachments: statement.attachments };
  return { text: output?.minimal ?? "", attachments: [asObject(output?.full)] };
}

/** Returns the text and attachments of a result that a message delivered; undefined for other data. */
export function saidIn(full: Value | undefined): { content: string; attachments: Attachment[] } | undefined {
  const document = full === undefined ? undefined : toJson(ValueSchema, full);
  if (!isObject(document)) return undefined;
  const { content, attachments, ...rest } = document;
  if (typeof content !== "string" || !Array.isArray(attachments) || Object.keys(rest).length > 0)
    return undefined;
  const decoded = attachments.map((attachment) => decode(AttachmentSchema, attachment));
  const messages = decoded.flatMap((one) => (one.ok ? [one.message] : []));
  return messages.length === decoded.length ? { content, attachments: messages } : undefined;
}

/** Converts JSON data to an attachment. */
export function asObject(full: Value | undefined): Attachment {
  const object = full ?? fromJson(ValueSchema, null);
  return create(AttachmentSchema, { kind: { case: "pythonObject", value: { object } } });
}
