import { headerFault, headersFor } from "./rules/param-headers.ts";
import { HEADER_MISMATCH, Refusal } from "./rules/refusal.ts";
import type { ToolInput } from "./tool-inputs.ts";

/**
 * Returns the headers that repeat arguments of a tool's call; undefined if the tool declares none.
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
  const fault = httpHeaders && headerFault(declared, args, httpHeaders);
  if (fault !== undefined)
    throw new Refusal(HEADER_MISMATCH, "Header mismatch", { reason: "INVALID_REQUEST", detail: fault });
  return headersFor(declared, args);
}
