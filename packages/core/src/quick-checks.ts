import type { ReflectMessage } from "@bufbuild/protobuf/reflect";
import type { Duration } from "@bufbuild/protobuf/wkt";
import { regexOf } from "./contract-patterns.ts";

/** Whether a value is certain to keep a rule. */
export type Check = (value: unknown) => boolean;

/** The check of a rule with its argument; undefined where there is nothing to check. */
export type Maker = (argument: unknown) => Check | undefined;

type Amount = number | bigint;

/** Of lists, as lists. */
export const LIST_RULES: Readonly<Record<string, Maker>> = {
  minItems: byCount((min) => (list) => (list as unknown[]).length >= min),
  maxItems: byCount((max) => (list) => (list as unknown[]).length <= max),
  unique: () => (list) => (list as unknown[]).length < 2,
};

const UUID = /^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/;

/**
 * Of texts. Lengths are of code points, of which a text has as many as UTF-16 code units at most, and half as many at
 * least. In UTF-8 a code unit takes three bytes at most.
 */
export const TEXT_RULES: Readonly<Record<string, Maker>> = {
  const: (text) => (value) => value === text,
  minLen: byCount((min) => ofText((text) => text.length >= 2 * min - 1)),
  maxLen: byCount((max) => ofText((text) => text.length <= max)),
  maxBytes: byCount((max) => ofText((text) => text.length * 3 <= max)),
  pattern: (source) => {
    const regex = regexOf(source as string);
    return ofText((text) => regex.test(text));
  },
  in: (texts) => {
    const among = new Set(texts as Iterable<unknown>);
    return (value) => among.has(value);
  },
  uuid: (on) => (on === true ? ofText((text) => UUID.test(text)) : undefined),
};

/** Of bytes. */
export const BYTES_RULES: Readonly<Record<string, Maker>> = {
  len: byCount((length) => ofBytes((bytes) => bytes.length === length)),
  minLen: byCount((min) => ofBytes((bytes) => bytes.length >= min)),
  maxLen: byCount((max) => ofBytes((bytes) => bytes.length <= max)),
};

/** Of numbers. A comparison with NaN is false. */
export const NUMBER_RULES: Readonly<Record<string, Maker>> = {
  const: (number) => (value) => value === number,
  gt: byAmount((value, limit) => value > limit),
  gte: byAmount((value, limit) => value >= limit),
  lt: byAmount((value, limit) => value < limit),
  lte: byAmount((value, limit) => value <= limit),
  finite: (on) => (on === true ? Number.isFinite : undefined),
};

/** Of durations that are zero or more; a negative one is left to protovalidate. */
export const DURATION_RULES: Readonly<Record<string, Maker>> = {
  gt: byNanos((value, limit) => value > limit),
  gte: byNanos((value, limit) => value >= limit),
  lt: byNanos((value, limit) => value < limit),
  lte: byNanos((value, limit) => value <= limit),
};

/** As {@link isRange}, of durations. */
export function isDurationRange({ greaterThan, lessThan }: DurationRange): boolean {
  const [lower, upper] = [greaterThan?.value, lessThan?.value];
  return lower === undefined || upper === undefined || nanosOf(lower) < nanosOf(upper);
}

interface DurationRange {
  readonly greaterThan?: { readonly value?: Nanos | undefined };
  readonly lessThan?: { readonly value?: Nanos | undefined };
}

type Nanos = Pick<Duration, "seconds" | "nanos">;

const A_SECOND = 1_000_000_000n;
/** Seconds of the longest google.protobuf.Duration. */
const MAX_SECONDS = 315_576_000_000n;

function nanosOf({ seconds, nanos }: Nanos): bigint {
  return seconds * A_SECOND + BigInt(nanos);
}

function byNanos(holds: (value: bigint, limit: bigint) => boolean): Maker {
  return (argument) => {
    const limit = nanosOf((argument as ReflectMessage).message as Duration);
    return (value) => {
      const { seconds, nanos } = value as Duration;
      const isUsual = seconds >= 0n && seconds < MAX_SECONDS && nanos >= 0 && nanos < 1_000_000_000;
      return isUsual && holds(nanosOf({ seconds, nanos }), limit);
    };
  };
}

/** The limits among the rules of a number. */
export interface Range {
  readonly greaterThan?: { readonly value?: Amount };
  readonly lessThan?: { readonly value?: Amount };
}

/** Where the upper limit is not above the lower one, protovalidate takes the two for what is left out. */
export function isRange({ greaterThan, lessThan }: Range): boolean {
  const [lower, upper] = [greaterThan?.value, lessThan?.value];
  return lower === undefined || upper === undefined || lower < upper;
}

function byCount(make: (count: number) => Check): Maker {
  return (count) => make(Number(count));
}

function ofText(check: (text: string) => boolean): Check {
  return (value) => typeof value === "string" && check(value);
}

function ofBytes(check: (bytes: Uint8Array) => boolean): Check {
  return (value) => value instanceof Uint8Array && check(value);
}

/** Numbers are compared with numbers and bigints with bigints, as the field's type has them. */
function byAmount(holds: (value: Amount, limit: Amount) => boolean): Maker {
  return (limit) => (value) => typeof value === typeof limit && holds(value as Amount, limit as Amount);
}

/** Of what is not known here. */
export function never(): boolean {
  return false;
}

export function both(first: Check, second: Check | undefined): Check {
  return second === undefined ? first : (value) => first(value) && second(value);
}

/** Undefined where none of them is one. */
export function all(checks: readonly (Check | undefined)[]): Check | undefined {
  const some = checks.filter((check) => check !== undefined);
  if (some.includes(never)) return never;
  if (some.length < 2) return some[0];
  return (value) => {
    for (let i = 0; i < some.length; i++) if (!(some[i] as Check)(value)) return false;
    return true;
  };
}
