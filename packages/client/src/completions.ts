import type { MessageInitShape } from "@bufbuild/protobuf";
import type { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { CompleteAssignmentRequestSchema } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { Gathered } from "./gathered.ts";

export type Completion = MessageInitShape<typeof CompleteAssignmentRequestSchema>;

/** Hands in results together, by BatchCompleteAssignments. Gives what each task is then. */
export class Completions extends Gathered<Completion, TaskStatus> {}
