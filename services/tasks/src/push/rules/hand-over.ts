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

/** What work is handed over with beside its content: kept, so that the same work can be named again by the same words. */
export interface Terms {
  readonly timeoutMs: number;
  /** Seconds that the context may be used; 0 without one. */
  readonly ttlS: number;
  readonly maxTokens: number;
  readonly detailLevel: string;
}

const MAX_INT32 = 2 ** 31 - 1;
/** The longest time to live that NEKTE servers of this kind take: 30 days. */
const MAX_TTL_S = 2_592_000;

const utf8 = new TextEncoder();

/** The terms of work that is handed over now and has to be done by a time. Both in epoch milliseconds. */
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

/** Reads terms as they were kept; undefined for what are none. */
export function readTerms(text: string): Terms | undefined {
  const terms: unknown = JSON.parse(text);
  if (!isObject(terms)) return undefined;
  const { timeoutMs, ttlS, maxTokens, detailLevel } = terms;
  const numbers = [timeoutMs, ttlS, maxTokens].every(Number.isSafeInteger);
  return numbers && typeof detailLevel === "string" ? (terms as unknown as Terms) : undefined;
}

/**
 * Free work as it is handed over (NEKTE 3). One context goes along: the task's input, else the first of its contexts; the
 * others are shared before.
 *
 * @param contexts `gone` where they were in memory and are there no more; what stands for them then says only that there was
 * one, which is enough for work that the endpoint knows
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
 * The contexts that are shared with the endpoint apart from the hand-over.
 *
 * @param carried how many of the first ones the hand-over itself carries
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

/** Whether two version hashes are prefixes of one digest. */
export function isSameVersion(ours: string, theirs: string): boolean {
  const digits = Math.min(ours.length, theirs.length);
  return digits >= 8 && ours.slice(0, digits).toLowerCase() === theirs.slice(0, digits).toLowerCase();
}

const GONE = create(SharedContextSchema, { envelope: { data: utf8.encode("null"), permissions: {} } });

/** The work in words, with what the overseer said of an earlier result. */
function descriptionOf({ description, reviewComment }: Task): string {
  return reviewComment === ""
    ? description
    : `${description}\n\nReview of an earlier result: ${reviewComment}`;
}

/** The endpoint may use what it is given for the work, and hand it to nobody: the delegator said nothing else of it. */
function inputEnvelope(input: JsonValue, id: string, ttlS: number): ContextEnvelope {
  return create(ContextEnvelopeSchema, {
    id,
    data: utf8.encode(JSON.stringify(input)),
    compression: "none",
    permissions: { forward: false, persist: true, derive: true },
    ttlS,
  });
}

/** A context with its own permissions and scope, for no longer than it lasts here. */
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

/** An id that no other work shares: the same context under another time to live would be another context. */
function contextId(remoteId: string, number: number): string {
  return `${remoteId}:${number}`;
}

function secondsLeft({ expireTime }: SharedContext, nowMs: number): number {
  return seconds(expireTime === undefined ? 1000 : fromTimestamp(expireTime) - nowMs);
}

function seconds(ms: number): number {
  return Math.min(Math.max(1, Math.floor(ms / 1000)), MAX_TTL_S);
}
