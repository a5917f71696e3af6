/** One way to do what a benchmark asks for. A call that returns a promise is awaited before the next one. */
export interface Contender {
  readonly name: string;
  readonly run: () => unknown;
  /** What is wanted of it; printed beside what was measured. */
  readonly goal?: Goal;
}

/** `times`: at least so many times as fast as the contender `as`; `within`: at most so much slower, 0.15 for 15 %. */
export type Goal =
  | { readonly times: number; readonly as?: string }
  | { readonly within: number; readonly as?: string };

/** Something that is measured once and is no time, as bytes. */
export interface Figure {
  readonly name: string;
  readonly unit: string;
  readonly measure: () => number | Promise<number>;
  readonly atMost?: number;
  readonly atLeast?: number;
}

/** Contenders that do the same thing. The first one is what the others are compared with. */
export interface Benchmark {
  readonly name: string;
  readonly contenders?: readonly Contender[];
  readonly figures?: readonly Figure[];
  readonly close?: () => void | Promise<void>;
}

/** What a `*.bench.ts` exports as its default: made only when its turn has come. */
export type Benchmarks = () => readonly Benchmark[] | Promise<readonly Benchmark[]>;

/** Milliseconds that a round of one contender takes, about; rounds of all contenders take turns. */
export const ROUND_MS = 60;
export const ROUNDS = 21;
