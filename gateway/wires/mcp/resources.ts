import { type JsonObject, toJson } from "@bufbuild/protobuf";
import { TranscriptSchema } from "@depute/contracts/asp/v0/transcript_pb";
import { type Task, TaskVerificationSchema } from "@depute/contracts/depute/tasks/v1/task_pb";
import { ArtifactSchema } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { ErrorReason } from "@depute/core";
import type { OwnResource, OwnResources } from "@depute/mcp";
import { encode } from "@depute/wire";
import { toA2aTask } from "@depute/wire/a2a";
import { refusalIn } from "../../edge/fault.ts";
import type { WireCall } from "../../edge/wire-call.ts";
import { type OwnClients, toView } from "./methods.ts";

const JSON_TYPE = "application/json";

/** Number of tasks on one page of the list. */
const PAGE_SIZE = 50;

/** Matches the URI of a resource: the kind, the id, and optionally the name of a view. */
const ADDRESS = /^depute:\/\/(tasks|sessions)\/([^/]{1,128})(?:\/([a-z]+))?$/;

/** The error reasons that mean that a resource does not exist, is hidden from the caller, or has a malformed id. */
const ABSENT: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.TASK_NOT_FOUND,
  ErrorReason.SESSION_NOT_FOUND,
  ErrorReason.CALLER_NOT_ALLOWED,
  ErrorReason.INVALID_REQUEST,
]);

/** The views of a task, by the last segment of the URI. */
const TASK_VIEWS: Readonly<Record<string, (task: Task) => JsonObject>> = {
  "": toView,
  artifacts: (task) => ({
    task: task.id,
    artifacts: toA2aTask(task).artifacts.map((artifact) => toJson(ArtifactSchema, artifact)),
  }),
  verification: ({ id, contractId, attestationId, delegationId, verification }) => ({
    task: id,
    ...(contractId !== "" && { contract: contractId }),
    ...(attestationId !== "" && { attestation: attestationId }),
    ...(delegationId !== "" && { delegation: delegationId }),
    ...(verification && { verification: toJson(TaskVerificationSchema, verification) }),
  }),
};

/** Returns Depute's own resources: tasks, their artifacts and checks, and transcripts of ASP sessions. */
export function ownResources({ tasks, aspSessions }: OwnClients): OwnResources<WireCall> {
  return {
    templates: [
      template("depute://tasks/{task}", "task", "A task in its current state."),
      template(
        "depute://tasks/{task}/artifacts",
        "artifacts",
        "The artifacts of a task, in the form of A2A.",
      ),
      template(
        "depute://tasks/{task}/verification",
        "verification",
        "The contract, the attestation and the check of a task's result.",
      ),
      template(
        "depute://sessions/{session}/transcript",
        "transcript",
        "The signed transcript of an ASP session.",
      ),
    ],
    async list(call, cursor) {
      const page = await tasks.listTasks({ pageSize: PAGE_SIZE, pageToken: cursor }, call.asCaller);
      return { resources: page.tasks.map(toResource), nextCursor: page.nextPageToken };
    },
    async read(uri, call) {
      const [, kind, id = "", view = ""] = ADDRESS.exec(uri) ?? [];
      try {
        if (kind === "sessions" && view === "transcript") {
          const { transcript } = await aspSessions.exportTranscript({ sessionId: id }, call.asCaller);
          return transcript && (encode(TranscriptSchema, transcript) as JsonObject);
        }
        const viewOf = kind === "tasks" && Object.hasOwn(TASK_VIEWS, view) ? TASK_VIEWS[view] : undefined;
        if (viewOf === undefined) return undefined;
        const { task } = await tasks.getTask({ taskId: id }, call.asCaller);
        return task && viewOf(task);
      } catch (thrown) {
        if (ABSENT.has(refusalIn(thrown).reason)) return undefined;
        throw thrown;
      }
    },
  };
}

function template(uriTemplate: string, name: string, description: string) {
  return { uriTemplate, name, description, mimeType: JSON_TYPE };
}

function toResource({ id, agentId, capabilityId, description }: Task): OwnResource {
  const work = capabilityId || description.slice(0, 80).toWellFormed();
  return {
    uri: `depute://tasks/${id}`,
    name: id,
    description: work === "" ? `work of ${agentId}` : `${agentId}: ${work}`,
    mimeType: JSON_TYPE,
  };
}
