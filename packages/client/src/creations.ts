import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CreateTaskRequestSchema } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { Batcher } from "./batcher.ts";

/** A task to create. Its request id makes a retry safe. */
export type Creation = MessageInitShape<typeof CreateTaskRequestSchema>;

/** Creates tasks in batches, by BatchCreateTasks. Each item resolves to its task's id. */
export class Creations extends Batcher<Creation, string> {}
