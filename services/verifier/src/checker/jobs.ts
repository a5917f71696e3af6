import type { Dialect, Violation } from "@depute/wire/json-schema";
import type { CheckResult } from "../rules/check-result.ts";

/**
 * What crosses to a worker and back. Documents travel as JSON texts: copying a text is cheap, and the worker then
 * works on an object of its own.
 */
export type Job =
  | {
      /** Whether schemas and patterns can be used, in order; ends at the first that cannot. */
      kind: "compile";
      /** JSON of a list of CompileItem. */
      items: string;
    }
  | {
      /** Whether an output passes (DelegateOS 10.3). */
      kind: "verify";
      /** JSON of a Judgement. */
      judgement: string;
      /** JSON of the output. */
      output: string;
    }
  | {
      /** Where a value breaks a schema. */
      kind: "validate";
      dialect: Dialect;
      /** JSON of the schema. */
      schema: string;
      /** JSON of the value; absent only compiles the schema. */
      value?: string;
    }
  | {
      /** The canonical form of a JSON text. */
      kind: "canonical";
      text: string;
    };

export type CompileItem = { schema: unknown } | { pattern: string; flags: string };

/** A schema or pattern that cannot be used. `index` is its place in a compile job's list. */
export interface Unusable {
  unusable: "schema" | "pattern";
  index: number;
  message: string;
  /** The pattern at fault, shortened. */
  pattern?: string;
}

export type JobResult<J extends Job = Job> = J extends { kind: "compile" }
  ? Unusable | undefined
  : J extends { kind: "verify" }
    ? CheckResult | { notJson: true }
    : J extends { kind: "canonical" }
      ? { canonical: string } | { problem: string } | { notJson: true }
      : Violation[] | Unusable | { notJson: true };

/** How one job of a request ended, and how long it took, in milliseconds. */
export type Answer = ({ result: JobResult } | { failure: string }) & { ms: number };

/** What a worker sends: once that it is ready, then an answer to each request. */
export type WorkerMessage = { ready: true } | { id: number; answers: Answer[] };

/** Jobs that are run one after the other and answered together. */
export type WorkerRequest = { id: number; jobs: readonly Job[] };

/** What a worker is started with. */
export interface WorkerSetup {
  /** One number, the place of the job that it runs within its request. */
  progress: Int32Array<SharedArrayBuffer>;
  /** The module with more checks; empty for none. */
  checks: string;
}
