import { once, type Presentation } from "@depute/mcp";
import type { HttpRequest } from "@depute/service";

/**
 * The token of a request's headers, `Authorization: DPoP <token>` with the proof in `DPoP` (RFC 9449). It is judged by
 * the tokens service alone, for each call.
 */
export function presentedBy({ headers, method }: HttpRequest, url: string): Presentation | undefined {
  const [, token] = /^DPoP +([A-Za-z0-9_-]+) *$/i.exec(headers.authorization ?? "") ?? [];
  if (token === undefined) return undefined;
  const { dpop: jwt } = headers;
  const proof = typeof jwt === "string" ? { jwt, method: method ?? "", target: url } : undefined;
  return once(token, "", proof);
}
