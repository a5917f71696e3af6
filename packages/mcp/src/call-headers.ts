import { headerFault, headersFor, type ParamHeader } from "./rules/param-headers.ts";
import { HEADER_MISMATCH, Refusal } from "./rules/refusal.ts";
import type { ToolInput } from "./tool-inputs.ts";

/**
 * Returns the HTTP headers that repeat arguments of a tool's call; undefined if the tool declares no such header.
 *
 * @throws Refusal if the client's own headers disagree with the arguments
 */
export function callHeaders(
  { httpHeaders }: { readonly httpHeaders?: Pick<Headers, "get"> },
  args: unknown,
  input: ToolInput | undefined,
): Record<string, string> | undefined {
  const declared = input?.headers ?? [];
  if (declared.length === 0) return undefined;
  assertHeaders(declared, args, httpHeaders);
  return headersFor(declared, args);
}

/** Refuses a call whose headers disagree with its arguments. Throws Refusal. */
export function assertHeaders(
  declared: readonly ParamHeader[],
  args: unknown,
  httpHeaders: Pick<Headers, "get"> | undefined,
): void {
  const fault = httpHeaders && headerFault(declared, args, httpHeaders);
  if (fault === undefined) return;
  throw new Refusal(HEADER_MISMATCH, "Header mismatch", { reason: "INVALID_REQUEST", detail: fault });
}
