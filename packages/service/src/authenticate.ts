import { DeputeError, ErrorReason } from "@depute/core";
import { type Caller, LOCAL_PRINCIPAL } from "./caller.ts";
import type { CredentialHolder, Credentials } from "./credentials.ts";
import { HOP, NO_SPIFFE_ID } from "./hop-headers.ts";
import type { Identities } from "./identities/identities.ts";
import type { IdentityHolder } from "./identities/identities-file.ts";

export interface AuthenticationOptions {
  /**
   * `open` treats a caller without credentials as `local`; `required` refuses this caller, unless the request itself
   * can prove its sender.
   */
  mode: "open" | "required";
  credentials: Credentials;
  /** Verifies login tokens and client certificates; absent if the settings trust none. */
  identities?: Identities;
}

/** The parts of a request that authentication reads. */
export interface Presented {
  header: Headers;
  htm: string;
  htu: string;
  /** Whether the call comes from one of the platform's processes: from this process, or with the internal secret. */
  trusted: boolean;
  /** Whether the method's request can prove its sender. */
  messageProves?: boolean;
  /**
   * The SPIFFE id of the connection's client certificate; empty for a certificate without a SPIFFE id, undefined
   * without a certificate. In a trusted call the id is ignored, because the certificate is that of the calling process.
   */
  certificate?: string | undefined;
}

/**
 * A verified external identity: the principal that the identities file assigns to it, with organization and roles, and
 * the SPIFFE id if a certificate proved it.
 */
export interface ProvenIdentity {
  readonly holder: IdentityHolder;
  readonly spiffeId?: string;
}

/**
 * Verifies an external identity: a login token (JWT) as Bearer credential, or a client certificate without other
 * credentials. An identity that cannot be verified is refused, even if no credentials are required.
 *
 * @returns undefined if the request presents no external identity
 * @throws DeputeError UNAUTHENTICATED: for a refused identity with the metadata `fault`, for a malformed
 * `Authorization` header without this metadata
 */
export function proveIdentity(
  { credentials, identities }: AuthenticationOptions,
  presented: Presented,
): Promise<ProvenIdentity> | ProvenIdentity | undefined {
  if (identities === undefined) return undefined;
  const { header, trusted } = presented;
  if (header.has("x-api-key") || header.has("dpop")) return undefined;
  const authorization = header.get("authorization");
  if (authorization !== null) {
    const [scheme, token] = splitAuthorization(authorization);
    if (scheme !== "bearer" || !identities.takes(token) || credentials.holderOf(token) !== undefined)
      return undefined;
    return identities.verify(token).then((holder) => ({ holder }));
  }
  if (!identities.hasCertificates) return undefined;
  if (trusted && header.get(HOP.origin) === "service") return undefined;
  const spiffeId = certificateOf(presented);
  if (spiffeId === undefined) return undefined;
  return { holder: identities.holderOfCertificate(spiffeId), spiffeId };
}

/** Returns the SPIFFE id of the client's certificate, from another process of the platform or from the connection. */
function certificateOf({ header, trusted, certificate }: Presented): string | undefined {
  if (!trusted) return certificate;
  const passed = header.get(HOP.certificate) ?? undefined;
  return passed === NO_SPIFFE_ID ? "" : passed;
}

/**
 * Authenticates a caller. Presented credentials must be valid, even if the server requires no credentials.
 *
 * @param proven the result of {@link proveIdentity} for the same request
 * @throws DeputeError UNAUTHENTICATED
 */
export function authenticate(
  { mode, credentials }: Pick<AuthenticationOptions, "mode" | "credentials">,
  presented: Presented,
  proven?: ProvenIdentity,
): Caller {
  const { header, trusted, messageProves = false } = presented;
  const htm = (trusted ? header.get(HOP.htm) : null) ?? presented.htm;
  const htu = (trusted ? header.get(HOP.htu) : null) ?? presented.htu;
  const authorization = header.get("authorization");
  const apiKey = header.get("x-api-key");
  const proof = header.get("dpop");

  if (apiKey !== null && (authorization !== null || proof !== null)) {
    throw unauthenticated("the request has two kinds of credentials; send only one");
  }
  if (proven !== undefined) return callerOfIdentity(proven, { htm, htu });
  const [scheme, credential] =
    apiKey === null ? splitAuthorization(authorization) : ["bearer", apiKey.trim()];
  switch (scheme) {
    case "": {
      if (proof !== null) return { kind: "bound", principal: "", proof, htm, htu };
      const isOwnCall = trusted && header.get(HOP.origin) === "service";
      if (isOwnCall) return ownCaller(header, { htm, htu });
      if (mode === "open") return { kind: "local", principal: LOCAL_PRINCIPAL, htm, htu };
      if (messageProves) return { kind: "message", principal: "", htm, htu };
      throw unauthenticated("credentials are required");
    }
    case "bearer": {
      if (proof !== null)
        throw unauthenticated("send a token with a holder proof as `Authorization: DPoP <token>`");
      return callerOfSecret(credentials.holderOf(credential), { htm, htu });
    }
    case "dpop": {
      const bound = { kind: "bound", principal: "", token: credential, htm, htu } as const;
      return proof === null ? bound : { ...bound, proof };
    }
    default:
      throw unauthenticated("the authorization scheme must be Bearer or DPoP");
  }
}

function callerOfIdentity({ holder, spiffeId }: ProvenIdentity, wire: Pick<Caller, "htm" | "htu">): Caller {
  const { principal, organization = "", roles, organizationRoles } = holder;
  return withOrganization(
    {
      kind: "credential",
      principal,
      ...wire,
      isAttested: true,
      ...(roles !== undefined && { roles }),
      ...(organizationRoles !== undefined && { organizationRoles }),
      ...(spiffeId !== undefined && { spiffeId }),
    },
    organization,
  );
}

function callerOfSecret(holder: CredentialHolder | undefined, wire: Pick<Caller, "htm" | "htu">): Caller {
  if (holder === undefined)
    throw unauthenticated("the credentials are not known to this platform; send configured credentials");
  const { principal, organization, roles } = holder;
  const caller = { kind: "credential", principal, ...wire, ...(roles && { roles }) } as const;
  return withOrganization(caller, organization);
}

function withOrganization(caller: Caller, organization: string): Caller {
  return organization === "" ? caller : { ...caller, organization };
}

/**
 * Returns the caller of a call that a service of the platform makes on its own behalf: `local`. The header
 * HOP.organization names the organization that owns the call's records; absent for none.
 *
 * @throws DeputeError UNAUTHENTICATED if this header is not percent-encoded
 */
function ownCaller(header: Headers, wire: Pick<Caller, "htm" | "htu">): Caller {
  const caller = { kind: "local", principal: LOCAL_PRINCIPAL, ...wire } as const;
  try {
    return withOrganization(caller, decodeURIComponent(header.get(HOP.organization) ?? ""));
  } catch {
    throw unauthenticated(`the header ${HOP.organization} is not percent-encoded; encode it`);
  }
}

/**
 * Splits an `Authorization` header into the scheme, in lower case, and the credentials. Both are empty if the header is
 * absent.
 */
export function splitAuthorization(authorization: string | null): [scheme: string, credential: string] {
  if (authorization === null) return ["", ""];
  const match = /^([!-~]+) +([!-~]+) *$/.exec(authorization);
  if (match === null) throw unauthenticated("the authorization header must be `<scheme> <credentials>`");
  return [match[1]?.toLowerCase() ?? "", match[2] ?? ""];
}

export function unauthenticated(message: string): DeputeError {
  return new DeputeError(ErrorReason.UNAUTHENTICATED, message);
}
