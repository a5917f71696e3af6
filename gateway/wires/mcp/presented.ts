import { once, type Presentation } from "@depute/mcp";
import type { HttpRequest } from "@depute/service";

/**
 * Reads the token in a request's headers: `Authorization: DPoP <token>` with the proof in `DPoP` (RFC 9449). Returns
 * undefined if there is none. This function verifies nothing: the tokens service verifies the token for each call.
 */
export function presentedBy({ headers, method }: HttpRequest, url: string): Presentation | undefined {
  const [, token] = /^DPoP +([A-Za-z0-9_-]+) *$/i.exec(headers.authorization ?? "") ?? [];
  if (token === undefined) return undefined;
  const { dpop: jwt } = headers;
  const proof = typeof jwt === "string" ? { jwt, method: method ?? "", target: url } : undefined;
  return once(token, "", proof);
}
