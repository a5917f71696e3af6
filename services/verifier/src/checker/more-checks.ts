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

/** Registers the checks that an operator adds to the seven checks of DelegateOS 6.2. */
export type RegisterChecks = (registry: Pick<CheckFunctionRegistry, "register">) => void;

/**
 * Loads a module of additional checks (DelegateOS 6.3), which the operator provides. The module's default export is a
 * RegisterChecks. The checks run in worker threads under the same limits as users' schemas.
 *
 * @param file path of the module; empty without additional checks
 * @throws Error if the module cannot be loaded or registers a name twice
 */
export async function loadChecks(file: string): Promise<RegisterChecks> {
  if (file === "") return () => {};
  const module: unknown = await import(pathToFileURL(resolve(file)).href);
  const register = typeof module === "object" && module !== null && "default" in module && module.default;
  if (typeof register !== "function") {
    throw new Error(
      `${file} has no default export that registers checks; export a function that takes the registry`,
    );
  }
  const checks = register as RegisterChecks;
  // Registers the checks once now, so that a faulty module stops the start of the service instead of the first check.
  checks(new CheckFunctionRegistry());
  return checks;
}

/** Creates a registry with the seven standard checks and the operator's additional checks. */
export function createRegistry(engines: CheckEngines, more: RegisterChecks): CheckFunctionRegistry {
  const registry = createDefaultRegistry(engines);
  more({ register: (name, fn, params) => registry.register(name, guardedCheck(name, fn), params) });
  return registry;
}

/**
 * Wraps a check. If the check throws, or returns no valid result, the wrapper throws CheckNotRun. The output has then
 * not passed.
 */
function guardedCheck(name: string, fn: CheckFunction): CheckFunction {
  return (output, params) => {
    let result: unknown;
    try {
      result = fn(output, params);
    } catch (error) {
      throw new CheckNotRun(`${name}: ${shorten(String(error), 300)}`);
    }
    if (!isResult(result)) throw new CheckNotRun(`${name}: the check returned no result`);
    return { ...result, ...(result.details !== undefined && { details: shorten(result.details) }) };
  };
}

function isResult(value: unknown): value is CheckResult {
  if (!isObject(value) || typeof value.passed !== "boolean") return false;
  const { score, details } = value;
  const hasScore = score === undefined || (typeof score === "number" && score >= 0 && score <= 1);
  return hasScore && (details === undefined || typeof details === "string");
}
