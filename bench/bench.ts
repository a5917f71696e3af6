import { amount } from "./amount.ts";

/**
 * One implementation of a measured operation. If a call returns a promise, the benchmark awaits it before the next
 * call.
 */
export interface Contender {
  readonly name: string;
  readonly run: () => unknown;
  /** The target value, printed next to the measured one. */
  readonly goal?: Goal;
}

/**
 * The goal of a contender, in comparison with the contender that `as` names. `times`: at least this many times as fast.
 * `within`: at most this much slower; 0.15 means 15 %.
 */
export type Goal =
  | { readonly times: number; readonly as?: string }
  | { readonly within: number; readonly as?: string };

/** A value that is measured once or in rounds of its own, such as a number of bytes. */
export interface Figure {
  readonly name: string;
  readonly unit: string;
  readonly measure: () => Value | Promise<Value>;
  /** The size at which the value is measured, such as a number of records. The suite growth plots values by size. */
  readonly at?: number;
  readonly atMost?: number;
  readonly atLeast?: number;
}

/** A number; of several rounds the median, with the interquartile range. */
export type Value = number | { readonly value: number; readonly spread: number };

/** Contenders for the same operation. The first contender is the baseline. */
export interface Benchmark {
  readonly name: string;
  readonly contenders?: readonly Contender[];
  readonly figures?: readonly Figure[];
  readonly close?: () => void | Promise<void>;
}

/** The type of a `*.bench.ts` file's default export. The function is called only when the benchmark runs. */
export type Benchmarks = () => readonly Benchmark[] | Promise<readonly Benchmark[]>;

/** Approximate milliseconds of one round of one contender. The contenders take turns, one round each. */
export const ROUND_MS = amount(60);
export const ROUNDS = amount(21);
