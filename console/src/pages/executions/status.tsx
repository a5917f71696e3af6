import { ExecutionStatus } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { Tag } from "../../parts/facts.tsx";
import { enumWord } from "../../rules/enum-word.ts";
import type { Tone } from "../../rules/task-status.ts";

const TONES: Readonly<Partial<Record<ExecutionStatus, Tone>>> = {
  [ExecutionStatus.COMPLETED]: "good",
  [ExecutionStatus.IN_PROGRESS]: "active",
  [ExecutionStatus.ACCEPTED]: "active",
  [ExecutionStatus.REJECTED]: "bad",
  [ExecutionStatus.FAILED]: "bad",
  [ExecutionStatus.EXPIRED]: "bad",
};

export function ExecutionTag({ status }: { readonly status: ExecutionStatus }) {
  return <Tag tone={TONES[status] ?? "neutral"}>{enumWord(ExecutionStatus, status)}</Tag>;
}
