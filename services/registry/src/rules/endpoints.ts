import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import { DeputeError, ErrorReason, type FieldViolation } from "@depute/core";

/** An address that is registered, and where it stands in the request. */
export interface Endpoint {
  readonly field: string;
  readonly url: string | undefined;
}

/** The addresses that an agent's record names. */
export function endpointsOf({ card, nekte, delegation }: Agent): Endpoint[] {
  return [
    { field: "agent.card.endpoints.asp", url: card?.endpoints?.asp },
    { field: "agent.card.endpoints.card", url: card?.endpoints?.card },
    { field: "agent.nekte.endpoint", url: nekte?.endpoint || undefined },
    { field: "agent.delegation.revocation_endpoint", url: delegation?.revocationEndpoint },
  ];
}

/**
 * Refuses addresses outside the configured origins (`https://agents.example`): what is registered here is called by others,
 * who take the registry's word for it.
 *
 * @param origins that are allowed; none means that every one is
 * @throws DeputeError INVALID_REQUEST with every one at fault
 */
export function checkEndpoints(endpoints: readonly Endpoint[], origins: readonly string[]): void {
  if (origins.length === 0) return;
  const violations: FieldViolation[] = [];
  for (const { field, url } of endpoints) {
    if (url === undefined || origins.includes(originOf(url) ?? "")) continue;
    violations.push({ field, description: "is at an address that the platform does not allow" });
  }
  if (violations.length === 0) return;
  const summary = violations.map(({ field, description }) => `${field}: ${description}`).join("; ");
  throw new DeputeError(ErrorReason.INVALID_REQUEST, summary, { violations });
}

/** The origin of a URL without credentials; undefined for what has none. `grpc` and `grpcs` have origins as `http` and `https`. */
export function originOf(url: string): string | undefined {
  const [scheme] = /^grpc(?=s?:)/i.exec(url) ?? [];
  if (scheme !== undefined) return originOf(`http${url.slice(scheme.length)}`)?.replace(/^http/, "grpc");
  if (!URL.canParse(url)) return undefined;
  const { origin, username, password } = new URL(url);
  return origin === "null" || username !== "" || password !== "" ? undefined : origin;
}
