import {
  CanonicalError,
  canonicalJson,
  DeputeError,
  ErrorReason,
  invalid,
  parseStrictJson,
} from "@depute/core";
import type { Dialect, Violation } from "@depute/wire/json-schema";
import type { CheckResult } from "../rules/check-result.ts";
import { fitsQuickly } from "../rules/quick-schema.ts";
import type { Compilable } from "../rules/spec-validation.ts";
import type { CompileItem, Unusable } from "./jobs.ts";
import { type KnownJudgement, keyOf } from "./known-judgement.ts";
import { type PoolOptions, WorkerPool } from "./pool.ts";

/** Who asks. The platform's own calls have no caller: they stand for many. */
export interface By {
  readonly signal?: AbortSignal;
  readonly caller?: string | undefined;
}

/** Texts up to so many characters are made canonical at once; it takes a millisecond or two. */
const AT_ONCE_CHARS = 6 * 1024;

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
  async compile(items: readonly Compilable[], by: By = {}): Promise<void> {
    const plain = items.map(
      ({ pattern, schema }): CompileItem => (pattern === undefined ? { schema } : pattern),
    );
    const unusable = await this.#pool.run({ kind: "compile", items: JSON.stringify(plain) }, by);
    if (unusable !== undefined) throw errorOf(unusable, items[unusable.index]?.field ?? "");
  }

  /**
   * Whether an output passes (DelegateOS 10.3): found out here where that cannot take long, else in a thread.
   *
   * @param output JSON of the output
   * @throws DeputeError INVALID_REQUEST when it is none
   */
  async verify({ text, key, quick }: KnownJudgement, output: string, by: By = {}): Promise<CheckResult> {
    if (quick !== undefined && fitsQuickly(quick, output)) return { passed: true, score: 1 };
    const result = await this.#pool.run({ kind: "verify", judgement: text, output }, { ...by, key });
    if ("notJson" in result) throw notJson("output");
    return result;
  }

  /**
   * The canonical form of a JSON text, made elsewhere when it is long.
   *
   * @throws CanonicalError for what has none, DeputeError INVALID_REQUEST for what is no JSON
   */
  async canonical(text: string, by: By = {}, field = "output"): Promise<string> {
    if (text.length <= AT_ONCE_CHARS) return canonicalJson(parsed(text, field));
    const result = await this.#pool.run({ kind: "canonical", text }, { ...by, key: "canonical" });
    if ("notJson" in result) throw notJson(field);
    if ("problem" in result) throw new CanonicalError(result.problem, "");
    return result.canonical;
  }

  /**
   * Where a value breaks a schema; nowhere when no value is given.
   *
   * @param schema canonical JSON of the schema
   * @param value JSON of the value
   * @throws DeputeError SCHEMA_INVALID, UNSUPPORTED_PATTERN, INVALID_REQUEST for a value that is no JSON
   */
  async validate(
    schema: string,
    dialect: Dialect,
    value: string | undefined,
    by: By = {},
  ): Promise<Violation[]> {
    const job = { kind: "validate", dialect, schema } as const;
    const result = await this.#pool.run(value === undefined ? job : { ...job, value }, {
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
