import { hash } from "node:crypto";
import { CanonicalError, canonicalJson, parseStrictJson } from "@depute/core";
import {
  type CompiledSchema,
  compilePattern,
  compileSchema,
  InvalidSchema,
  UnsupportedPattern,
  violationsText,
} from "@depute/wire/json-schema";
import { CheckNotRun, type CheckResult, shorten } from "../rules/check-result.ts";
import type { Matcher, Validator } from "../rules/checks.ts";
import { type OutputRule, verifyOutput } from "../rules/verify-output.ts";
import { WeightedLru } from "../weighted-lru.ts";
import type { CompileItem, Job, JobResult, Unusable } from "./jobs.ts";
import { createRegistry, type RegisterChecks } from "./more-checks.ts";

/** Default dialect of schemas (DelegateOS 5.1). A schema selects 2020-12 by its `$schema`. */
const CONTRACT_DIALECT = "draft-07";

/**
 * Capacity of each of the two caches of compiled code, in characters of JSON text. Compiled code takes 50 times the
 * size of its JSON text, so two full caches take about 50 MB.
 */
const CACHE_CHARS = 512 * 1024;

/**
 * The depth and the number of values of an output have no limit, because the output's bytes and the job's time have
 * limits.
 */
const ANY_SIZE = { maxDepth: Number.POSITIVE_INFINITY, maxValues: Number.POSITIVE_INFINITY };

/** A compiled output rule. */
type Plan = (output: unknown) => CheckResult;

/** Runs the jobs of one worker. Caches compiled code under the digest of its schema or rule. */
export class JobRunner {
  readonly #plans = new WeightedLru<Plan>(CACHE_CHARS);
  readonly #schemas = new WeightedLru<CompiledSchema>(CACHE_CHARS);
  readonly #more: RegisterChecks;

  /** @param more registers the additional checks besides the seven of DelegateOS 6.2 */
  constructor(more: RegisterChecks) {
    this.#more = more;
  }

  run(job: Job): JobResult {
    switch (job.kind) {
      case "compile":
        return firstUnusable(JSON.parse(job.items) as CompileItem[]);
      case "verify":
        return this.#verify(job);
      case "validate":
        return this.#validate(job);
      case "canonical":
        return canonical(job.text);
    }
  }

  #verify({ outputRule, output }: Job & { kind: "verify" }): JobResult<Job & { kind: "verify" }> {
    let value: unknown;
    try {
      value = parseStrictJson(output, ANY_SIZE);
    } catch {
      return { notJson: true };
    }
    return this.#plan(outputRule)(value);
  }

  #plan(outputRule: string): Plan {
    const key = digest(outputRule);
    const knownPlan = this.#plans.get(key);
    if (knownPlan !== undefined) return knownPlan;
    const plan = planOf(JSON.parse(outputRule) as OutputRule, this.#more);
    this.#plans.set(key, plan, outputRule.length);
    return plan;
  }

  #validate(job: Job & { kind: "validate" }): JobResult<typeof job> {
    const key = digest(`${job.dialect} ${job.schema}`);
    let compiled = this.#schemas.get(key);
    if (compiled === undefined) {
      try {
        compiled = compileSchema(JSON.parse(job.schema), job.dialect, "plain");
      } catch (error) {
        return unusable(error, 0);
      }
      this.#schemas.set(key, compiled, job.schema.length);
    }
    if (job.value === undefined) return [];
    let value: unknown;
    try {
      value = parseStrictJson(job.value, ANY_SIZE);
    } catch {
      return { notJson: true };
    }
    try {
      return compiled(value);
    } catch (error) {
      if (error instanceof RangeError) return unusable(new InvalidSchema("the schema recurses endlessly"), 0);
      throw error;
    }
  }
}

function canonical(text: string): JobResult<Job & { kind: "canonical" }> {
  try {
    return { canonical: canonicalJson(parseStrictJson(text, ANY_SIZE)) };
  } catch (error) {
    if (error instanceof SyntaxError) return { notJson: true };
    if (error instanceof CanonicalError) return { problem: error.message };
    throw error;
  }
}

function digest(text: string): string {
  return hash("sha256", text, "base64url");
}

function planOf(outputRule: OutputRule, more: RegisterChecks): Plan {
  // The keys of `validators` are schema objects of the parsed rule, compared by identity. The plan keeps the rule, so
  // the objects stay alive.
  const validators = new Map<unknown, Validator>();
  const matchers = new Map<string, Matcher>();
  const engines = {
    validator: (schema: unknown) => remember(validators, schema, () => contractValidator(schema)),
    matcher: (pattern: string, flags: string) =>
      remember(matchers, JSON.stringify([flags, pattern]), () => contractMatcher(pattern, flags)),
  };
  const registry = createRegistry(engines, more);
  return (output) => verifyOutput(outputRule, output, registry, engines);
}

function remember<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const existing = map.get(key);
  if (existing !== undefined) return existing;
  const value = make();
  map.set(key, value);
  return value;
}

function contractValidator(schema: unknown): Validator {
  const compiled = compileOrCheckNotRun(() => compileSchema(schema, CONTRACT_DIALECT, "contract"));
  return (value) => {
    const violations = compiled(value);
    return violations.length === 0 ? undefined : shorten(violationsText(violations));
  };
}

function contractMatcher(pattern: string, flags: string): Matcher {
  return compileOrCheckNotRun(() => compilePattern(pattern, flags));
}

function compileOrCheckNotRun<T>(compile: () => T): T {
  try {
    return compile();
  } catch (error) {
    if (error instanceof InvalidSchema || error instanceof UnsupportedPattern)
      throw new CheckNotRun(error.message);
    throw error;
  }
}

function firstUnusable(items: readonly CompileItem[]): Unusable | undefined {
  for (const [index, item] of items.entries()) {
    try {
      if ("pattern" in item) compilePattern(item.pattern, item.flags);
      else compileSchema(item.schema, CONTRACT_DIALECT, "contract");
    } catch (error) {
      return unusable(error, index);
    }
  }
  return undefined;
}

function unusable(error: unknown, index: number): Unusable {
  if (error instanceof UnsupportedPattern) {
    const pattern = shorten(error.pattern, 64);
    return { unusable: "pattern", index, message: shorten(error.message, 300), pattern };
  }
  if (error instanceof InvalidSchema)
    return { unusable: "schema", index, message: shorten(error.message, 300) };
  throw error;
}
