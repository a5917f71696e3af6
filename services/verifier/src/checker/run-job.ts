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
import { WeightedLru } from "../lru.ts";
import { CheckNotRun, type CheckResult, shorten } from "../rules/check-result.ts";
import type { Matcher, Validator } from "../rules/checks.ts";
import { type Judgement, verifyOutput } from "../rules/verify-output.ts";
import type { CompileItem, Job, JobResult, Unusable } from "./jobs.ts";
import { createRegistry, type RegisterChecks } from "./more-checks.ts";

/** DelegateOS writes its schemas in draft-07 (5.1); one whose `$schema` says 2020-12 is taken as that. */
const CONTRACT_DIALECT = "draft-07";

/** JSON text whose compiled form is kept, in characters, twice: Ajv's code takes 50 times the text, so about 50 MB in all. */
const CACHE_CHARS = 512 * 1024;

/** A thread may read outputs of any form: their bytes are bounded, and its deadline holds. */
const ANY_SIZE = { maxDepth: Number.POSITIVE_INFINITY, maxValues: Number.POSITIVE_INFINITY };

/** A judgement, parsed once, with whatever of it has been compiled. */
type Plan = (output: unknown) => CheckResult;

/** Runs the jobs of one worker. What was compiled is kept under the digest of its whole text. */
export class JobRunner {
  readonly #plans = new WeightedLru<Plan>(CACHE_CHARS);
  readonly #schemas = new WeightedLru<CompiledSchema>(CACHE_CHARS);
  readonly #more: RegisterChecks;

  /** @param more checks besides the seven of DelegateOS 6.2 */
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

  #verify({ judgement, output }: Job & { kind: "verify" }): JobResult<Job & { kind: "verify" }> {
    let value: unknown;
    try {
      value = parseStrictJson(output, ANY_SIZE);
    } catch {
      return { notJson: true };
    }
    return this.#plan(judgement)(value);
  }

  #plan(judgement: string): Plan {
    const key = digest(judgement);
    const known = this.#plans.get(key);
    if (known !== undefined) return known;
    const plan = planOf(JSON.parse(judgement) as Judgement, this.#more);
    this.#plans.set(key, plan, judgement.length);
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
      if (error instanceof RangeError) return unusable(new InvalidSchema("it recurses without end"), 0);
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

function planOf(judgement: Judgement, more: RegisterChecks): Plan {
  // Keyed by the very object in the parsed judgement, which the plan holds as long as it is kept itself.
  const validators = new Map<unknown, Validator>();
  const matchers = new Map<string, Matcher>();
  const engines = {
    validator: (schema: unknown) => remember(validators, schema, () => contractValidator(schema)),
    matcher: (pattern: string, flags: string) =>
      remember(matchers, JSON.stringify([flags, pattern]), () => contractMatcher(pattern, flags)),
  };
  const registry = createRegistry(engines, more);
  return (output) => verifyOutput(judgement, output, registry, engines);
}

function remember<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const value = make();
  map.set(key, value);
  return value;
}

function contractValidator(schema: unknown): Validator {
  const compiled = notRun(() => compileSchema(schema, CONTRACT_DIALECT, "contract"));
  return (value) => {
    const violations = compiled(value);
    return violations.length === 0 ? undefined : shorten(violationsText(violations));
  };
}

function contractMatcher(pattern: string, flags: string): Matcher {
  return notRun(() => compilePattern(pattern, flags));
}

function notRun<T>(compile: () => T): T {
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
