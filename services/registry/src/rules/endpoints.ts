import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import { type A2aInterface, DeputeError, ErrorReason, type FieldViolation } from "@depute/core";

/** A registered URL and its field in the request. */
export interface Endpoint {
  readonly field: string;
  readonly url: string | undefined;
}

/**
 * Returns the URLs in an agent's record that other services call.
 *
 * @param a2aInterface the interface in the agent's own A2A card; undefined without a card
 */
export function endpointsOf(
  { card, nekte, delegation }: Agent,
  a2aInterface?: Pick<A2aInterface, "url">,
): Endpoint[] {
  return [
    { field: "agent.card.endpoints.asp", url: card?.endpoints?.asp },
    { field: "agent.card.endpoints.card", url: card?.endpoints?.card },
    { field: "agent.nekte.endpoint", url: nekte?.endpoint || undefined },
    { field: "agent.a2a_card.supported_interfaces", url: a2aInterface?.url },
    { field: "agent.delegation.revocation_endpoint", url: delegation?.revocationEndpoint },
  ];
}

/**
 * Refuses URLs outside the configured origins (such as `https://agents.example`). Other services call registered URLs,
 * so without this check an agent's principal could direct those calls to any host.
 *
 * @param origins the allowed origins; an empty list allows all
 * @throws DeputeError INVALID_REQUEST with every refused URL
 */
export function checkEndpoints(endpoints: readonly Endpoint[], origins: readonly string[]): void {
  if (origins.length === 0) return;
  const violations: FieldViolation[] = [];
  for (const { field, url } of endpoints) {
    if (url === undefined || origins.includes(originOf(url) ?? "")) continue;
    violations.push({ field, description: "has an origin that the platform does not allow" });
  }
  if (violations.length === 0) return;
  const summary = violations.map(({ field, description }) => `${field}: ${description}`).join("; ");
  throw new DeputeError(ErrorReason.INVALID_REQUEST, summary, { violations });
}

/**
 * Returns the origin of a URL; undefined if the URL has credentials or no origin. `grpc` and `grpcs` URLs have origins
 * like `http` and `https` URLs.
 */
export function originOf(url: string): string | undefined {
  const [scheme] = /^grpc(?=s?:)/i.exec(url) ?? [];
  if (scheme !== undefined) return originOf(`http${url.slice(scheme.length)}`)?.replace(/^http/, "grpc");
  if (!URL.canParse(url)) return undefined;
  const { origin, username, password } = new URL(url);
  return origin === "null" || username !== "" || password !== "" ? undefined : origin;
}
