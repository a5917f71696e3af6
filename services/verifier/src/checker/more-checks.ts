import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { isObject } from "@depute/core";
import {
  type CheckEngines,
  type CheckFunction,
  CheckFunctionRegistry,
  createDefaultRegistry,
} from "../rules/check-registry.ts";
import { CheckNotRun, type CheckResult, shorten } from "../rules/check-result.ts";

/** Registers checks besides the seven of DelegateOS 6.2. */
export type RegisterChecks = (registry: Pick<CheckFunctionRegistry, "register">) => void;

/**
 * The checks that a module brings (DelegateOS 6.3): its default export is a RegisterChecks. They are code of whoever runs
 * the verifier, and run where users' schemas do, under the same limits.
 *
 * @param file a module; none for an empty name
 * @throws Error for a module that cannot be loaded, or registers a name twice
 */
export async function loadChecks(file: string): Promise<RegisterChecks> {
  if (file === "") return () => {};
  const module: unknown = await import(pathToFileURL(resolve(file)).href);
  const register = typeof module === "object" && module !== null && "default" in module && module.default;
  if (typeof register !== "function") {
    throw new Error(`${file} has no function as its default export that registers checks`);
  }
  const checks = register as RegisterChecks;
  // A fault shows at the start, not when an output is judged.
  checks(new CheckFunctionRegistry());
  return checks;
}

/** The seven checks, and more. */
export function createRegistry(engines: CheckEngines, more: RegisterChecks): CheckFunctionRegistry {
  const registry = createDefaultRegistry(engines);
  more({ register: (name, fn, params) => registry.register(name, guarded(name, fn), params) });
  return registry;
}

/** A check that fails, or gives no result, has not been carried out, and so has not passed. */
function guarded(name: string, fn: CheckFunction): CheckFunction {
  return (output, params) => {
    let result: unknown;
    try {
      result = fn(output, params);
    } catch (error) {
      throw new CheckNotRun(`${name}: ${shorten(String(error), 300)}`);
    }
    if (!isResult(result)) throw new CheckNotRun(`${name}: it gave no result`);
    return { ...result, ...(result.details !== undefined && { details: shorten(result.details) }) };
  };
}

function isResult(value: unknown): value is CheckResult {
  if (!isObject(value) || typeof value.passed !== "boolean") return false;
  const { score, details } = value;
  const hasScore = score === undefined || (typeof score === "number" && score >= 0 && score <= 1);
  return hasScore && (details === undefined || typeof details === "string");
}
