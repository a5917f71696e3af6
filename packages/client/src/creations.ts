import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CreateTaskRequestSchema } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { Gathered } from "./gathered.ts";

/** Each has a request id of its own, under which it may be sent again. */
export type Creation = MessageInitShape<typeof CreateTaskRequestSchema>;

/** Hands over pieces of work together, by BatchCreateTasks. Gives the task's id for each. */
export class Creations extends Gathered<Creation, string> {}
