import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import { type TaskDraft, TaskDraftSchema } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { canonicalJson } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";

/**
 * Tells drafts apart by the work that they ask for: the order of members makes no difference, nor does the budget, which says how
 * long an answer may be. Digests are stored, so the data of contexts
 * that may not be persisted has no part in them: who knows what it might be could find out.
 */
export function draftDigest(draft: TaskDraft): string {
  const { budget: _budget, ...work } = draft;
  if (draft.contexts.length === 0) return messageDigest(TaskDraftSchema, work);
  const contexts = draft.contexts.map((envelope) =>
    envelope.permissions?.persist === true ? envelope : { ...envelope, data: new Uint8Array() },
  );
  return messageDigest(TaskDraftSchema, { ...work, contexts });
}

/** Tells messages apart by what they say: the order of members makes no difference. */
export function messageDigest<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): string {
  return sha256Hex(canonicalJson(toJson(schema, message)));
}
