import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { TaskDraftSchema } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import {
  type ContextEnvelope,
  type ContextRequest,
  type ContextResponse,
  ContextResponseSchema,
  type DelegateRequest,
} from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, ErrorReason, invalid, isUuid, newId } from "@depute/core";
import { reasonOf } from "@depute/service";
import type { Clients } from "../../src/clients.ts";
import { renameFields } from "../../src/fault.ts";
import type { WireCall } from "../../src/wire-call.ts";

type Contexts = Pick<Clients, "contexts">;

/**
 * nekte.context (NEKTE 7): shares a context, with the addressed agent where the address names one; reads one; takes one
 * back. A context is named by the caller's own id for it, or by the server's.
 *
 * Depute's choice: a request names in its scope what it needs a context with a scope for.
 *
 * @throws DeputeError AGENT_NOT_FOUND, CONTEXT_ID_TAKEN, CONTEXT_EXPIRED, CONTEXT_PERMISSION_DENIED, LIMIT_EXCEEDED, ...
 */
export async function answerContext(
  { contexts }: Contexts,
  agentId: string,
  { action = "share", envelope }: ContextRequest,
  call: WireCall,
): Promise<ContextResponse> {
  if (envelope === undefined) throw new Error("a valid request has an envelope");
  if (action === "share") {
    const readerAgentIds = agentId === "" ? [] : [agentId];
    const { context } = await contexts
      .shareContext({ requestId: newId(), envelope, readerAgentIds }, call.asCaller)
      .catch((thrown: unknown) => {
        throw renameFields(thrown, { envelope: "/envelope" });
      });
    return create(ContextResponseSchema, { id: envelope.id ?? context?.id ?? "", status: "stored" });
  }
  const { id } = envelope;
  if (id === undefined) throw invalid("/envelope/id", "is needed to name a context");
  try {
    if (action === "revoke") {
      await byName(id, call, (name) => contexts.revokeContext({ name }, call.asCaller));
      return create(ContextResponseSchema, { id, status: "revoked" });
    }
    const capabilityId = envelope.scope?.capabilities[0] ?? "";
    const { context } = await byName(id, call, (name) =>
      contexts.requestContext({ name, capabilityId }, call.asCaller),
    );
    if (context?.envelope === undefined) throw new Error("a context was found and not told of");
    return create(ContextResponseSchema, { id, envelope: { ...context.envelope, id } });
  } catch (thrown) {
    if (reasonOf(thrown) !== ErrorReason.CONTEXT_NOT_FOUND) throw thrown;
    return create(ContextResponseSchema, { id, status: "not_found" });
  }
}

/**
 * What a delegation's context is of the task's draft: a shared context that it names (`compression` is `reference`), or one that
 * the delegation shares. Its data is the task's input, under the context's permissions and for its time.
 *
 * @throws DeputeError CONTEXT_NOT_FOUND, CONTEXT_EXPIRED, CONTEXT_PERMISSION_DENIED, INVALID_REQUEST
 */
export async function draftedContext(
  { contexts }: Contexts,
  { context, task }: DelegateRequest,
  call: WireCall,
): Promise<Pick<MessageInitShape<typeof TaskDraftSchema>, "contextIds" | "contexts" | "inputFromContext">> {
  if (context === undefined) return {};
  if (task?.cap === undefined) checkScope(context);
  if (context.compression === "reference") {
    return {
      contextIds: [await referenceOf({ contexts }, context, capabilityOf(task?.cap), call)],
      inputFromContext: true,
    };
  }
  return { contexts: [context], inputFromContext: true };
}

/** The id of a capability without its agent's; empty for free work. */
export function capabilityOf(cap: string | undefined): string {
  return cap === undefined ? "" : cap.slice(cap.indexOf("/") + 1);
}

async function referenceOf(
  { contexts }: Contexts,
  { id }: ContextEnvelope,
  capabilityId: string,
  call: WireCall,
): Promise<string> {
  if (id === undefined) throw invalid("/context/id", "is needed to name a context");
  if (hasProof(call)) {
    if (isUuid(id)) return id;
    throw invalid("/context/id", "has to be the server's id, because a holder proof counts for one call");
  }
  const { context } = await byName(id, call, (name) =>
    contexts.requestContext({ name, capabilityId }, call.asCaller),
  );
  return context?.id ?? id;
}

type ContextName = { case: "id" | "externalId"; value: string };

/** Asks for a context by whichever kind of id this is. */
async function byName<T>(id: string, call: WireCall, ask: (name: ContextName) => Promise<T>): Promise<T> {
  if (!isUuid(id)) return ask({ case: "externalId", value: id });
  try {
    return await ask({ case: "id", value: id });
  } catch (thrown) {
    // The caller's own id may look like the server's; with a holder proof there is no second call to ask.
    if (reasonOf(thrown) !== ErrorReason.CONTEXT_NOT_FOUND || hasProof(call)) throw thrown;
    return ask({ case: "externalId", value: id });
  }
}

/** Whether the caller's credentials count for one call only. */
function hasProof({ asCaller, aside }: WireCall): boolean {
  return asCaller !== aside;
}

/**
 * Holds a context to its scope (NEKTE 7). Depute's choice: free work runs no capability, so no scope holds it.
 *
 * @throws DeputeError CONTEXT_PERMISSION_DENIED
 */
function checkScope(context: ContextEnvelope): void {
  if (context.scope === undefined) return;
  throw new DeputeError(
    ErrorReason.CONTEXT_PERMISSION_DENIED,
    "the context is for certain capabilities only, and work in words is none of them: name the capability in task.cap",
    {
      metadata: { capability: "" },
      violations: [{ field: "/context/scope", description: "does not hold the work" }],
    },
  );
}
