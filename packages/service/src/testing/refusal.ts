import { type FieldViolation, reasonName } from "@depute/core";
import { fromConnectError } from "../errors-on-wire.ts";

/** The error of a refused call: the name of its reason, its metadata, and the invalid fields. */
export interface Refusal {
  readonly reason: string;
  readonly metadata: Record<string, string>;
  readonly fields: string[];
  readonly violations: FieldViolation[];
}

/** Returns the error of a refused call or stream. The test fails if the call succeeds. */
export async function refusal(call: Promise<unknown> | AsyncIterable<unknown>): Promise<Refusal> {
  const completion: Promise<unknown> = Symbol.asyncIterator in call ? collect(call) : call;
  const answer = await completion.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if ("value" in answer) throw new Error(`not refused: ${String(answer.value)}`);
  const { reason, metadata, violations } = fromConnectError(answer.error);
  return { reason: reasonName(reason), metadata, violations, fields: violations.map(({ field }) => field) };
}

/** Collects all items of a stream, or its first `atMost` items. */
export async function collect<T>(stream: AsyncIterable<T>, atMost = Number.POSITIVE_INFINITY): Promise<T[]> {
  const items: T[] = [];
  for await (const item of stream) {
    items.push(item);
    if (items.length >= atMost) break;
  }
  return items;
}
