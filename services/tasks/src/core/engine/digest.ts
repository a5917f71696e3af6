import { type TaskDraft, TaskDraftSchema } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { messageDigest } from "@depute/service";

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
