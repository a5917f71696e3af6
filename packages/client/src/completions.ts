import type { MessageInitShape } from "@bufbuild/protobuf";
import type { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { CompleteAssignmentRequestSchema } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { Batcher } from "./batcher.ts";

export type Completion = MessageInitShape<typeof CompleteAssignmentRequestSchema>;

/** Completes tasks in batches, by BatchCompleteAssignments. Each item resolves to its task's new status. */
export class Completions extends Batcher<Completion, TaskStatus> {}
