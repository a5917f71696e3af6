import { DeputeError, decodePageToken, ErrorReason, type PageFilters } from "@depute/core";

type Part = "string" | "number";
type Values<Parts extends readonly Part[]> = {
  [I in keyof Parts]: Parts[I] extends "string" ? string : number;
};

/**
 * The position in a page token, of exactly these parts; undefined for the first page.
 *
 * @throws DeputeError PAGE_TOKEN_INVALID
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
  throw new DeputeError(ErrorReason.PAGE_TOKEN_INVALID, "page_token is not of this list", {
    violations: [{ field: "page_token", description: "not a page token of this list" }],
  });
}
