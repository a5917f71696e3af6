import {
  CanonicalError,
  canonicalJson,
  DeputeError,
  ErrorReason,
  invalid,
  parseStrictJson,
} from "@depute/core";
import { cpuQuotaOf } from "@depute/service";
import { type Dialect, fitsQuickly, type Violation } from "@depute/wire/json-schema";
import { onEventLoop } from "../on-event-loop.ts";
import type { CheckResult } from "../rules/check-result.ts";
import type { Compilable } from "../rules/spec-validation.ts";
import type { CompileItem, Job, JobResult, Unusable } from "./jobs.ts";
import { WorkerPool } from "./pool.ts";
import type { JobOptions, PoolOptions } from "./pool-options.ts";
import { keyOf, type PreparedRule } from "./prepared-rule.ts";

/**
 * The caller of a check, which pays for the check's processor time. `caller` is absent for the platform's own calls,
 * because these serve many callers.
 */
export interface CheckCaller {
  readonly signal?: AbortSignal;
  readonly caller?: string | undefined;
}

/**
 * Maximum length, in characters, of a text that the event loop makes canonical. Such a text takes at most one to two
 * milliseconds; a worker thread handles a longer text.
 */
const AT_ONCE_CHARS = 6 * 1024;

/**
 * Runs users' schemas, patterns and checks in worker threads, and charges the caller their processor time. Each method
 * can also throw the errors of WorkerPool.run, and LIMIT_EXCEEDED if the caller has used up its quota of processor
 * time.
 */
export class Checker {
  readonly #pool: WorkerPool;

  constructor(options: PoolOptions) {
    this.#pool = new WorkerPool(options);
  }

  /**
   * Compiles the schemas and patterns of a contract.
   *
   * @throws DeputeError SCHEMA_INVALID or UNSUPPORTED_PATTERN, naming the faulty field
   */
  async compile(items: readonly Compilable[], by: CheckCaller = {}): Promise<void> {
    const plain = items.map(
      ({ pattern, schema }): CompileItem => (pattern === undefined ? { schema } : pattern),
    );
    const unusable = await this.#run({ kind: "compile", items: JSON.stringify(plain) }, by);
    if (unusable !== undefined) throw errorOf(unusable, items[unusable.index]?.field ?? "");
  }

  /**
   * Verifies an output (DelegateOS 10.3). The event loop validates simple schemas; a worker thread runs every other
   * check.
   *
   * @param output JSON of the output
   * @throws DeputeError INVALID_REQUEST if the output is not JSON
   */
  async verify(
    { text, key, quick }: PreparedRule,
    output: string,
    by: CheckCaller = {},
  ): Promise<CheckResult> {
    if (quick !== undefined && onEventLoop(() => fitsQuickly(quick, output)))
      return { passed: true, score: 1 };
    const result = await this.#run({ kind: "verify", outputRule: text, output }, { ...by, key });
    if ("notJson" in result) throw notJson("output");
    return result;
  }

  /**
   * Makes a JSON text canonical. A worker thread handles long texts.
   *
   * @throws CanonicalError if the value has no canonical form
   * @throws DeputeError INVALID_REQUEST if the text is not JSON
   */
  async canonical(text: string, by: CheckCaller = {}, field = "output"): Promise<string> {
    if (text.length <= AT_ONCE_CHARS) return onEventLoop(() => canonicalJson(parsed(text, field)));
    const result = await this.#run({ kind: "canonical", text }, { ...by, key: "canonical" });
    if ("notJson" in result) throw notJson(field);
    if ("problem" in result) throw new CanonicalError(result.problem, "");
    return result.canonical;
  }

  /**
   * Validates a value against a schema. Without a value, only compiles the schema.
   *
   * @param schema canonical JSON of the schema
   * @param value JSON of the value
   * @returns the violations; empty if the value fits
   * @throws DeputeError SCHEMA_INVALID, UNSUPPORTED_PATTERN, INVALID_REQUEST if the value is not JSON
   */
  async validate(
    schema: string,
    dialect: Dialect,
    value: string | undefined,
    by: CheckCaller = {},
  ): Promise<Violation[]> {
    const job = { kind: "validate", dialect, schema } as const;
    const result = await this.#run(value === undefined ? job : { ...job, value }, {
      ...by,
      key: keyOf(`${dialect} ${schema}`),
    });
    if ("notJson" in result) throw notJson("value");
    if ("unusable" in result) throw errorOf(result, "schema");
    return result;
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  #run<J extends Job>(job: J, options: JobOptions): Promise<JobResult<J>> {
    const quota = cpuQuotaOf();
    quota?.assertRoom();
    return this.#pool.run(job, { ...options, onCpu: quota && ((ms) => quota.use(ms)) });
  }
}

function parsed(text: string, field: string): unknown {
  try {
    return parseStrictJson(text);
  } catch (error) {
    throw invalid(field, `not JSON: ${(error as Error).message.slice(0, 200)}`);
  }
}

function notJson(field: string): DeputeError {
  return invalid(field, "not JSON");
}

function errorOf({ unusable, message, pattern }: Unusable, field: string): DeputeError {
  const violations = [{ field, description: message }];
  return unusable === "pattern"
    ? new DeputeError(ErrorReason.UNSUPPORTED_PATTERN, `${field}: the pattern is not supported: ${message}`, {
        metadata: { pattern: pattern ?? "" },
        violations,
      })
    : new DeputeError(ErrorReason.SCHEMA_INVALID, `${field}: ${message}`, { violations });
}
