import { create, type JsonValue, type MessageInitShape } from "@bufbuild/protobuf";
import type { TaskDraftSchema } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import {
  type ContextEnvelope,
  type ContextRequest,
  type ContextResponse,
  ContextResponseSchema,
  type DelegateRequest,
} from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, ErrorReason, invalid, isObject, isUuid, randomUuid } from "@depute/core";
import { reasonOf } from "@depute/service";
import type { Clients } from "../../edge/clients.ts";
import { renameFields } from "../../edge/fault.ts";
import type { WireCall } from "../../edge/wire-call.ts";

type Contexts = Pick<Clients, "contexts">;

/**
 * nekte.context (NEKTE 7): shares, reads or revokes a context. If the address names an agent, the context is shared
 * with that agent. The caller identifies a context by the id that the caller chose, or by the server's id. If a
 * context has a scope, a request to read the context must name a capability in the scope of the request's envelope.
 * NEKTE does not define this rule; Depute does.
 *
 * @throws DeputeError INVALID_REQUEST without the required id; the errors of ContextService, except CONTEXT_NOT_FOUND
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
      .shareContext({ requestId: randomUuid(), envelope, readerAgentIds }, call.asCaller)
      .catch((thrown: unknown) => {
        throw renameFields(thrown, { envelope: "/envelope" });
      });
    return create(ContextResponseSchema, { id: envelope.id ?? context?.id ?? "", status: "stored" });
  }
  const { id } = envelope;
  if (id === undefined) throw invalid("/envelope/id", "is required, because it names the context");
  try {
    if (action === "revoke") {
      await byName(id, call, (name) => contexts.revokeContext({ name }, call.asCaller));
      return create(ContextResponseSchema, { id, status: "revoked" });
    }
    const capabilityId = envelope.scope?.capabilities[0] ?? "";
    const { context } = await byName(id, call, (name) =>
      contexts.requestContext({ name, capabilityId }, call.asCaller),
    );
    if (context?.envelope === undefined) throw new Error("GetContext answered without a context");
    return create(ContextResponseSchema, { id, envelope: { ...context.envelope, id } });
  } catch (thrown) {
    if (reasonOf(thrown) !== ErrorReason.CONTEXT_NOT_FOUND) throw thrown;
    return create(ContextResponseSchema, { id, status: "not_found" });
  }
}

/**
 * Returns the fields of the task draft that a delegation's context determines; an empty object if the delegation has
 * no context. The delegation either names a shared context (`compression` is `reference`) or contains a new one. The
 * data of the context becomes the task's input. The context's permissions and time to live apply.
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

/**
 * Removes the agent's id and the slash from a capability's id. Returns an empty text for work that names no capability.
 */
export function capabilityOf(cap: string | undefined): string {
  return cap === undefined ? "" : cap.slice(cap.indexOf("/") + 1);
}

async function referenceOf(
  { contexts }: Contexts,
  { id }: ContextEnvelope,
  capabilityId: string,
  call: WireCall,
): Promise<string> {
  if (id === undefined) throw invalid("/context/id", "is required, because it names the context");
  if (hasProof(call)) {
    if (isUuid(id)) return id;
    throw invalid(
      "/context/id",
      "must be the server's id, because a holder proof is valid for one call only",
    );
  }
  const { context } = await byName(id, call, (name) =>
    contexts.requestContext({ name, capabilityId }, call.asCaller),
  );
  return context?.id ?? id;
}

type ContextName = { case: "contextId" | "externalId"; value: string };

/**
 * Calls `ask` with the name of a context. If the id is a UUID, it is first tried as the server's id, then as the
 * caller's own id.
 */
async function byName<T>(id: string, call: WireCall, ask: (name: ContextName) => Promise<T>): Promise<T> {
  if (!isUuid(id)) return ask({ case: "externalId", value: id });
  try {
    return await ask({ case: "contextId", value: id });
  } catch (thrown) {
    // The caller's own id may also be a UUID, so the gateway tries this meaning next. A holder proof is valid for only
    // one call, so with a proof there is no second call.
    if (reasonOf(thrown) !== ErrorReason.CONTEXT_NOT_FOUND || hasProof(call)) throw thrown;
    return ask({ case: "externalId", value: id });
  }
}

/** Whether the caller's credentials are valid for only one call. */
function hasProof({ asCaller, aside }: WireCall): boolean {
  return asCaller !== aside;
}

/**
 * Refuses a context that has a scope, if the work names no capability (NEKTE 7). Depute's choice: a scope never
 * includes work without a capability.
 *
 * @throws DeputeError CONTEXT_PERMISSION_DENIED
 */
function checkScope(context: ContextEnvelope): void {
  if (context.scope === undefined) return;
  throw new DeputeError(
    ErrorReason.CONTEXT_PERMISSION_DENIED,
    "the context has a scope of capabilities, but the work names no capability: name it in task.cap",
    {
      metadata: { capability: "" },
      violations: [{ field: "/context/scope", description: "does not include the work" }],
    },
  );
}

/**
 * Rounds the envelope's `ttl_s` up to whole seconds and writes the exact time to `ttl_ms`. Published clients send
 * fractions of seconds, but the field of the published proto is an integer.
 *
 * @param member the parameter that contains the envelope
 */
export function wholeSeconds(params: unknown, member: "context" | "envelope"): unknown {
  if (!isObject(params)) return params;
  const envelope = params[member];
  if (!isObject(envelope)) return params;
  // Removes a `ttl_ms` that the client sent, because the published form has no such member. Only this function sets it.
  const { ttl_ms: _, ttl_s: seconds, ...rest } = envelope;
  if (typeof seconds !== "number" || Number.isInteger(seconds) || seconds <= 0) {
    return { ...params, [member]: { ...rest, ...(seconds === undefined ? {} : { ttl_s: seconds }) } };
  }
  const exact = { ttl_s: Math.ceil(seconds), ttl_ms: Math.max(1, Math.round(seconds * 1000)) };
  return { ...params, [member]: { ...rest, ...exact } };
}

/**
 * Returns an envelope in the published form: without `ttl_ms`, and with the exact time in `ttl_s`, in seconds with
 * fractions.
 */
export function withFraction(envelope: JsonValue): JsonValue {
  if (!isObject(envelope) || envelope.ttl_ms === undefined) return envelope;
  const { ttl_ms: ms, ...rest } = envelope as Record<string, JsonValue>;
  return { ...rest, ttl_s: Number(ms) / 1000 };
}
