import type { VerificationSpec } from "./documents.ts";

/**
 * Whether a verification needs neither a model nor a reviewer. Such a verification gives equal results for equal
 * outputs.
 */
export function isDeterministic(spec: VerificationSpec): boolean {
  if (spec.method === "llm_judge" || spec.method === "human_review") return false;
  return spec.method !== "composite" || (spec.steps ?? []).every(isDeterministic);
}
