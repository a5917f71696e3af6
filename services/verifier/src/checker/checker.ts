import { DeputeError, ErrorReason } from "@depute/core";
import type { CheckResult } from "../rules/check-result.ts";
import type { Compilable } from "../rules/spec-validation.ts";
import type { CompileItem, Unusable } from "./jobs.ts";
import { type PoolOptions, WorkerPool } from "./pool.ts";
import type { Dialect, Violation } from "./schema.ts";

/** Runs schemas, patterns and checks of users, apart from everything else. See WorkerPool.run for errors of each call. */
export class Checker {
  readonly #pool: WorkerPool;

  constructor(options: PoolOptions) {
    this.#pool = new WorkerPool(options);
  }

  /**
   * Compiles what a contract brings.
   *
   * @throws DeputeError SCHEMA_INVALID or UNSUPPORTED_PATTERN, with the field at fault
   */
  async compile(items: readonly Compilable[], signal?: AbortSignal): Promise<void> {
    const plain = items.map(
      ({ pattern, schema }): CompileItem => (pattern === undefined ? { schema } : pattern),
    );
    const unusable = await this.#pool.run({ kind: "compile", items: JSON.stringify(plain) }, signal);
    if (unusable !== undefined) throw errorOf(unusable, items[unusable.index]?.field ?? "");
  }

  /**
   * Whether an output passes (DelegateOS 10.3).
   *
   * @param judgement JSON of a Judgement, the same text for the same contract so that what was compiled is found again
   * @param output JSON of the output
   */
  verify(judgement: string, output: string, signal?: AbortSignal): Promise<CheckResult> {
    return this.#pool.run({ kind: "verify", judgement, output }, signal);
  }

  /**
   * Where a value breaks a schema; nowhere when no value is given.
   *
   * @param schema canonical JSON of the schema
   * @param value JSON of the value
   * @throws DeputeError SCHEMA_INVALID, UNSUPPORTED_PATTERN
   */
  async validate(
    schema: string,
    dialect: Dialect,
    value: string | undefined,
    signal?: AbortSignal,
  ): Promise<Violation[]> {
    const job = { kind: "validate", dialect, schema } as const;
    const result = await this.#pool.run(value === undefined ? job : { ...job, value }, signal);
    if ("unusable" in result) throw errorOf(result, "schema");
    return result;
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
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
