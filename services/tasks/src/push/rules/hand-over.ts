import { create, type JsonValue } from "@bufbuild/protobuf";
import { type SharedContext, SharedContextSchema } from "@depute/contracts/depute/tasks/v1/context_pb";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  type ContextEnvelope,
  ContextEnvelopeSchema,
  type DelegateRequest,
  DelegateRequestSchema,
  type TokenBudget,
  TokenBudgetSchema,
} from "@depute/contracts/nekte/v1/nekte_pb";
import { DEFAULT_RESULT_BUDGET, fromTimestamp, isObject } from "@depute/core";

/**
 * The terms of a task at an endpoint: its limits, without its content. The store keeps them, so that a repeated call
 * sends the same terms.
 */
export interface Terms {
  readonly timeoutMs: number;
  /** The time to live of the request's context, in seconds. If the context is the task's input, this is the timeout. */
  readonly ttlS: number;
  readonly maxTokens: number;
  readonly detailLevel: string;
}

const MAX_INT32 = 2 ** 31 - 1;
/** The maximum time to live of a context that NEKTE servers accept, in seconds: 30 days. */
const MAX_TTL_S = 2_592_000;

const utf8 = new TextEncoder();

/** Creates the terms of a task at an endpoint, from `nowMs` to `untilMs`, both in epoch milliseconds. */
export function termsOf(
  { budget }: Task,
  contexts: readonly SharedContext[],
  nowMs: number,
  untilMs: number,
): Terms {
  const timeoutMs = Math.min(Math.max(1, untilMs - nowMs), MAX_INT32);
  const [first] = contexts;
  const ttlS = first === undefined ? seconds(timeoutMs) : secondsLeft(first, nowMs);
  const { maxTokens, detailLevel } = budget ?? DEFAULT_RESULT_BUDGET;
  return { timeoutMs, ttlS, maxTokens, detailLevel };
}

/** Parses stored terms; undefined if the text contains no terms. */
export function readTerms(text: string): Terms | undefined {
  const terms: unknown = JSON.parse(text);
  if (!isObject(terms)) return undefined;
  const { timeoutMs, ttlS, maxTokens, detailLevel } = terms;
  const numbers = [timeoutMs, ttlS, maxTokens].every(Number.isSafeInteger);
  return numbers && typeof detailLevel === "string" ? (terms as unknown as Terms) : undefined;
}

/**
 * Creates a `nekte.delegate` request, for work without a capability (NEKTE 3). The request contains one context: the
 * task's input or, if the task has no input, the first context. Separate earlier calls share the further contexts.
 *
 * @param contexts `gone` if a context of the task is no longer available. A placeholder then replaces the first
 * context, which suffices for an endpoint that already has the task.
 */
export function handOver(
  task: Task,
  input: JsonValue | undefined,
  contexts: readonly SharedContext[] | "gone",
  remoteId: string,
  terms: Terms,
): DelegateRequest {
  const { timeoutMs, ttlS } = terms;
  const [first] = contexts === "gone" ? [GONE] : contexts;
  const context =
    input === undefined
      ? first && envelopeOf(first, contextId(remoteId, 0), ttlS)
      : inputEnvelope(input, contextId(remoteId, 0), ttlS);
  return create(DelegateRequestSchema, {
    task: { id: remoteId, desc: descriptionOf(task), timeoutMs, budget: budgetOf(terms) },
    ...(context === undefined ? {} : { context }),
  });
}

/**
 * Returns the contexts that separate calls share, because the `nekte.delegate` request does not contain them.
 *
 * @param carried 1 if the `nekte.delegate` request contains the first context, otherwise 0
 */
export function sharedApart(
  contexts: readonly SharedContext[],
  carried: 0 | 1,
  remoteId: string,
  nowMs: number,
): ContextEnvelope[] {
  return contexts
    .slice(carried)
    .map((context, number) =>
      envelopeOf(context, contextId(remoteId, number + 1), secondsLeft(context, nowMs)),
    );
}

export function budgetOf({ maxTokens, detailLevel }: Pick<Terms, "maxTokens" | "detailLevel">): TokenBudget {
  return create(TokenBudgetSchema, { maxTokens, detailLevel });
}

/** Whether two version hashes are equal in the digits that both have. They must share at least 8 digits. */
export function isSameVersion(ours: string, theirs: string): boolean {
  const digits = Math.min(ours.length, theirs.length);
  return digits >= 8 && ours.slice(0, digits).toLowerCase() === theirs.slice(0, digits).toLowerCase();
}

const GONE = create(SharedContextSchema, { envelope: { data: utf8.encode("null"), permissions: {} } });

/** Returns the task's description. After a review, adds the reviewer's comment on the earlier result. */
export function descriptionOf({ description, reviewComment }: Task): string {
  return reviewComment === ""
    ? description
    : `${description}\n\nReview of an earlier result: ${reviewComment}`;
}

/**
 * Wraps the input in a context. Its permissions do not allow forwarding, because the delegator granted no use beyond
 * this task.
 */
function inputEnvelope(input: JsonValue, id: string, ttlS: number): ContextEnvelope {
  return create(ContextEnvelopeSchema, {
    id,
    data: utf8.encode(JSON.stringify(input)),
    compression: "none",
    permissions: { forward: false, persist: true, derive: true },
    ttlS,
  });
}

/** Copies a context's data, permissions and scope into a new envelope. The copy expires no later than the original. */
function envelopeOf({ envelope }: SharedContext, id: string, ttlS: number): ContextEnvelope {
  const { data, permissions, scope } = envelope ?? create(ContextEnvelopeSchema);
  return create(ContextEnvelopeSchema, {
    id,
    data,
    compression: envelope?.compression ?? "none",
    permissions: permissions ?? {},
    ttlS,
    ...(scope === undefined ? {} : { scope }),
  });
}

/**
 * Returns a context id that is unique to this task at the endpoint. Another task may share the context with another
 * time to live.
 */
function contextId(remoteId: string, number: number): string {
  return `${remoteId}:${number}`;
}

function secondsLeft({ expireTime }: SharedContext, nowMs: number): number {
  return seconds(expireTime === undefined ? 1000 : fromTimestamp(expireTime) - nowMs);
}

function seconds(ms: number): number {
  return Math.min(Math.max(1, Math.floor(ms / 1000)), MAX_TTL_S);
}
