import type { Dialect, Violation } from "@depute/wire/json-schema";
import type { CheckResult } from "../rules/check-result.ts";

/** A job for a worker thread. Documents are JSON text, because a copy of text is cheaper than a clone of objects. */
export type Job =
  | {
      /** Compiles schemas and patterns in order, and stops at the first that does not compile. */
      kind: "compile";
      /** JSON of an array of CompileItem values. */
      items: string;
    }
  | {
      /** Verifies an output (DelegateOS 10.3). */
      kind: "verify";
      /** JSON of the OutputRule. */
      outputRule: string;
      /** JSON of the output. */
      output: string;
    }
  | {
      /** Validates a value against a schema. */
      kind: "validate";
      dialect: Dialect;
      /** JSON of the schema. */
      schema: string;
      /** JSON of the value. If absent, the job only compiles the schema. */
      value?: string;
    }
  | {
      /** Makes a JSON text canonical. */
      kind: "canonical";
      text: string;
    };

export type CompileItem = { schema: unknown } | { pattern: string; flags: string };

/**
 * The first schema or pattern that does not compile. `index` is its position in the items of a compile job; 0 in a job
 * of another kind.
 */
export interface Unusable {
  unusable: "schema" | "pattern";
  index: number;
  message: string;
  /** The faulty pattern, shortened; absent for a schema. */
  pattern?: string;
}

export type JobResult<J extends Job = Job> = J extends { kind: "compile" }
  ? Unusable | undefined
  : J extends { kind: "verify" }
    ? CheckResult | { notJson: true }
    : J extends { kind: "canonical" }
      ? { canonical: string } | { problem: string } | { notJson: true }
      : Violation[] | Unusable | { notJson: true };

/**
 * The result of one job, or the message of an unexpected error. `ms` is the run time and `cpuMs` the processor time, in
 * milliseconds.
 */
export type Answer = ({ result: JobResult } | { failure: string }) & { ms: number; cpuMs: number };

/**
 * A message from a worker. The worker first reports that it is ready, then answers each request. `usedMs` is the
 * processor time in milliseconds that the worker has used since its start.
 */
export type WorkerMessage = ({ ready: true } | { id: number; answers: Answer[] }) & { usedMs: number };

/** Jobs that a worker runs one after the other and answers in one message. */
export type WorkerRequest = { id: number; jobs: readonly Job[] };

/** The data with which the pool starts a worker. */
export interface WorkerSetup {
  /** An array with one number, which a worker and the pool share: the position of the running job in its request. */
  progress: Int32Array<SharedArrayBuffer>;
  /** Path of the module with additional checks; empty without such a module. */
  checks: string;
}
