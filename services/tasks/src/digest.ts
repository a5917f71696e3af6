import { createHash } from "node:crypto";
import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import { type TaskDraft, TaskDraftSchema } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { canonicalJson } from "@depute/core";

/** SHA-256 of bytes or a text, in hex. */
export function sha256(content: Uint8Array | string): string {
  return createHash("sha256").update(content).digest("hex");
}

/** Tells drafts apart by what they say: the order of members makes no difference. */
export function draftDigest(draft: TaskDraft): string {
  return messageDigest(TaskDraftSchema, draft);
}

/** Tells messages apart by what they say: the order of members makes no difference. */
export function messageDigest<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): string {
  return sha256(canonicalJson(toJson(schema, message)));
}
