import { admitWish, type GateOptions } from "./gate.ts";
import type { Presentation } from "./presentation.ts";
import { type Declared, missingCapability } from "./rules/client-capabilities.ts";
import { gatedRequestOf } from "./rules/methods.ts";
import { MISSING_CAPABILITY, Refusal } from "./rules/refusal.ts";
import type { ToolMap } from "./rules/tool-map.ts";

export interface AnsweredOptions {
  readonly gate: GateOptions;
  readonly map: ToolMap;
  readonly presentation: Presentation | undefined;
  /**
   * The client's capabilities; undefined if they are unknown, or if the proxy has already checked the requests against
   * them.
   */
  readonly declared: Declared | undefined;
}

/**
 * A server's result can contain requests to the client (`input_required`, revision 2026-07-28). This function admits
 * each of them.
 *
 * @throws Refusal; DeputeError if the authoriser is unavailable
 */
export async function admitAnswered(
  { resultType, inputRequests }: Readonly<Record<string, unknown>>,
  { gate, map, presentation, declared }: AnsweredOptions,
): Promise<void> {
  if (resultType !== "input_required" || typeof inputRequests !== "object" || inputRequests === null) return;
  for (const wish of Object.values(inputRequests)) {
    if (declared !== undefined) assertDeclared(wish, declared);
    const { method, params } = (wish ?? {}) as Asked;
    if (map.passed.has(String(method))) continue;
    await admitWish(gate, gatedRequestOf(String(method), params ?? {}, map), presentation);
  }
}

interface Asked {
  readonly method?: unknown;
  readonly params?: Record<string, unknown>;
}

/** Throws Refusal if a request to the client needs a capability that the client did not declare. */
export function assertDeclared(asked: unknown, declared: Declared): void {
  const { method, params } = (asked ?? {}) as Asked;
  const requiredCapabilities = missingCapability(String(method), params, declared);
  if (requiredCapabilities === undefined) return;
  throw new Refusal(MISSING_CAPABILITY, "Missing required client capability", {
    requiredCapabilities: requiredCapabilities as never,
  });
}
