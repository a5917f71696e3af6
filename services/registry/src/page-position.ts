import { DeputeError, decodePageToken, ErrorReason, type PageFilters } from "@depute/core";

type Part = "string" | "number";
type Values<Parts extends readonly Part[]> = {
  [I in keyof Parts]: Parts[I] extends "string" ? string : number;
};

/**
 * Decodes the position in a page token. Returns undefined for the empty token, which requests the first page.
 *
 * @param parts the required types of the position's elements, in order
 * @throws DeputeError PAGE_TOKEN_INVALID for a malformed page token, for one of a list with other filters, and if the
 * position has other elements
 */
export function readPosition<const Parts extends readonly Part[]>(
  token: string,
  filters: PageFilters,
  parts: Parts,
): Values<Parts> | undefined {
  const position = decodePageToken(token, filters);
  if (position === undefined) return undefined;
  if (position.length === parts.length && parts.every((part, i) => typeof position[i] === part)) {
    return position as unknown as Values<Parts>;
  }
  throw new DeputeError(
    ErrorReason.PAGE_TOKEN_INVALID,
    "page_token is from another list; repeat the call that returned it",
    {
      violations: [{ field: "page_token", description: "is from another list" }],
    },
  );
}
