import { type FieldViolation, reasonName } from "@depute/core";
import { fromConnectError } from "../errors-on-wire.ts";

/** How a call was refused: the reason's name, its metadata, and the fields at fault. */
export interface Refusal {
  readonly reason: string;
  readonly metadata: Record<string, string>;
  readonly fields: string[];
  readonly violations: FieldViolation[];
}

/** The refusal of a call, or of a stream, that has to fail. */
export async function refusal(call: Promise<unknown> | AsyncIterable<unknown>): Promise<Refusal> {
  const whole: Promise<unknown> = Symbol.asyncIterator in call ? collect(call) : call;
  const answer = await whole.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if ("value" in answer) throw new Error(`not refused: ${String(answer.value)}`);
  const { reason, metadata, violations } = fromConnectError(answer.error);
  return { reason: reasonName(reason), metadata, violations, fields: violations.map(({ field }) => field) };
}

/** All of a stream, or its first items. */
export async function collect<T>(stream: AsyncIterable<T>, atMost = Number.POSITIVE_INFINITY): Promise<T[]> {
  const items: T[] = [];
  for await (const item of stream) {
    items.push(item);
    if (items.length >= atMost) break;
  }
  return items;
}
