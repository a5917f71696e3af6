import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { ExecutionService } from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { AttestationService } from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { LogService } from "@depute/contracts/depute/verifier/v1/log_service_pb";

/** Clients of the services that store tasks, executions, attestations and the transparency log. */
export interface ExplainedServices {
  readonly tasks: Client<typeof TaskService>;
  readonly executions: Client<typeof ExecutionService>;
  readonly attestations: Client<typeof AttestationService>;
  readonly log: Client<typeof LogService>;
}

/** Creates the clients of the services whose records an explanation of authority needs. */
export function explainedServices(connect: (name: "tasks" | "verifier") => Transport): ExplainedServices {
  return {
    tasks: createClient(TaskService, connect("tasks")),
    executions: createClient(ExecutionService, connect("tasks")),
    attestations: createClient(AttestationService, connect("verifier")),
    log: createClient(LogService, connect("verifier")),
  };
}
