import { DeputeError, ErrorReason } from "@depute/core";
import {
  exitCodeParams,
  fieldExistsParams,
  jsonSchemaParams,
  lengthParams,
  outputEqualsParams,
  type ParamsRule,
  regexMatchParams,
} from "./check-params.ts";
import type { CheckResult } from "./check-result.ts";
import {
  arrayLength,
  type Bounds,
  exitCode,
  fieldExists,
  jsonSchema,
  type Matcher,
  outputEquals,
  regexMatch,
  stringLength,
  type Validator,
} from "./checks.ts";

/** The implementation of one check (DelegateOS 6.2). A check may throw CheckNotRun. */
export type CheckFunction = (output: unknown, params?: unknown) => CheckResult;

/**
 * Compiles users' patterns and schemas. Only worker threads implement this interface, because users' patterns and
 * schemas may block the thread.
 */
export interface CheckEngines {
  matcher(pattern: string, flags: string): Matcher;
  validator(schema: unknown): Validator;
}

interface Entry {
  fn: CheckFunction;
  params: ParamsRule;
}

/** The checks that contracts may name (DelegateOS 6.3). */
export class CheckFunctionRegistry {
  readonly #entries = new Map<string, Entry>();

  /**
   * Registers a check.
   *
   * @param params validates the check's parameters when a contract is created; if absent, all parameters are valid
   * @throws Error if the name is empty or already registered
   */
  register(name: string, fn: CheckFunction, params: ParamsRule = () => undefined): void {
    if (name === "" || this.#entries.has(name)) throw new Error(`cannot register the check "${name}"`);
    this.#entries.set(name, { fn, params });
  }

  /**
   * Returns the implementation of a check.
   *
   * @throws DeputeError UNKNOWN_CHECK
   */
  get(name: string): CheckFunction {
    return this.#entry(name).fn;
  }

  /**
   * Returns the rule for a check's parameters.
   *
   * @throws DeputeError UNKNOWN_CHECK
   */
  paramsRule(name: string): ParamsRule {
    return this.#entry(name).params;
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  list(): string[] {
    return [...this.#entries.keys()];
  }

  #entry(name: string): Entry {
    const entry = this.#entries.get(name);
    if (entry === undefined) {
      throw new DeputeError(ErrorReason.UNKNOWN_CHECK, "unknown check", {
        metadata: { check: name.slice(0, 64).toWellFormed() },
      });
    }
    return entry;
  }
}

/** Creates a registry with the seven checks of DelegateOS 6.2. */
export function createDefaultRegistry(engines: CheckEngines): CheckFunctionRegistry {
  const registry = new CheckFunctionRegistry();
  registry.register(
    "regex_match",
    (output, params) => {
      const { pattern, flags, field } = params as { pattern: string; flags?: string; field?: string };
      return regexMatch(output, engines.matcher(pattern, flags ?? ""), field);
    },
    regexMatchParams,
  );
  registry.register(
    "json_schema",
    (output, params) => jsonSchema(output, engines.validator((params as { schema: unknown }).schema)),
    jsonSchemaParams,
  );
  registry.register("string_length", (output, p) => stringLength(output, p as Bounds), lengthParams);
  registry.register("array_length", (output, p) => arrayLength(output, p as Bounds), lengthParams);
  registry.register(
    "field_exists",
    (output, params) => fieldExists(output, (params as { fields: string[] }).fields),
    fieldExistsParams,
  );
  registry.register(
    "exit_code",
    (output, params) => exitCode(output, (params as { expected: number }).expected),
    exitCodeParams,
  );
  registry.register(
    "output_equals",
    (output, params) => outputEquals(output, (params as { expected: unknown }).expected),
    outputEqualsParams,
  );
  return registry;
}
