import type { IncomingHttpHeaders } from "node:http";
import {
  type AuthenticationOptions,
  authenticate,
  type Presented,
  type ProvenIdentity,
  proveIdentity,
  splitAuthorization,
  unauthenticated,
} from "./authenticate.ts";
import { PlainHeaders } from "./fast/plain-values.ts";

/**
 * Returns the principal of a request, for a log line. The result is the principal of a configured secret, a client
 * certificate or a verified login token, or `local`; `none` if required credentials are missing; `unknown` for invalid
 * credentials. The result is empty for a DelegateOS token or a holder proof, which only the tokens service can verify,
 * and for a login token that this process has not verified.
 *
 * @param certificate see {@link Presented}
 */
export function presentedPrincipal(
  options: AuthenticationOptions,
  headers: IncomingHttpHeaders,
  certificate?: string,
): string {
  try {
    const presented = { ...presentedIn(headers, certificate), messageProves: true };
    const [scheme, token] = splitAuthorization(presented.header.get("authorization"));
    if (scheme === "bearer" && options.identities?.takes(token) === true)
      return options.identities.known(token)?.principal ?? "";
    const proven = proveIdentity(options, presented) as ProvenIdentity | undefined;
    const { kind, principal } = authenticate(options, presented, proven);
    return kind === "message" ? "none" : principal;
  } catch {
    return "unknown";
  }
}

/**
 * Authenticates a request over plain HTTP; see `ServiceDeps.loginOf`.
 *
 * @throws DeputeError UNAUTHENTICATED
 */
export async function loginOf(
  options: AuthenticationOptions & { mode: "required" },
  headers: IncomingHttpHeaders,
  certificate?: string,
): Promise<string> {
  const presented = presentedIn(headers, certificate);
  const { kind, principal } = authenticate(options, presented, await proveIdentity(options, presented));
  if (kind !== "credential")
    throw unauthenticated("a login is required: send a Bearer token or a client certificate");
  return principal;
}

/**
 * Returns the credentials of a request over plain HTTP. Such a request never comes from a process of the platform, so
 * the headers of {@link HOP} are ignored.
 */
function presentedIn(headers: IncomingHttpHeaders, certificate: string | undefined): Presented {
  const fields: Record<string, string> = {};
  for (const name of ["authorization", "x-api-key", "dpop"]) {
    const value = headers[name];
    if (typeof value === "string") fields[name] = value;
  }
  const header = PlainHeaders.received(fields);
  return { header, htm: "", htu: "", trusted: false, certificate };
}
