import type { IncomingHttpHeaders } from "node:http";
import { getOption, hasOption } from "@bufbuild/protobuf";
import { type ContextKey, createContextKey, type Interceptor } from "@connectrpc/connect";
import { message_proves_caller } from "@depute/contracts/depute/rpc/v1/method_options_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import {
  clientCertificateKey,
  inProcessKey,
  principalKey,
  trustedKey,
  type WithValues,
} from "./call-values.ts";
import { type CredentialHolder, type Credentials, noCredentials } from "./credentials.ts";
import type { Identities } from "./identities/identities.ts";
import type { IdentityHolder } from "./identities/identities-file.ts";
import type { RoleName } from "./identities/identities-schema.ts";
import type { InternalSecrets } from "./internal-secrets.ts";
import { grantedRoles } from "./roles/caller-roles.ts";

/** The caller of a method. */
export interface Caller {
  /**
   * `local`: a caller without credentials where none are required, or a service of the platform on its own behalf; the
   * caller may act for every agent. `credential`: a configured secret, a login token (JWT) of a trusted issuer or a
   * client certificate; a file names the principal of the credential. `bound`: an unverified DelegateOS token or holder
   * proof; the principal stays empty until the tokens service verifies it. `message`: no credentials, at a method whose
   * request can prove its sender (depute.rpc.v1.message_proves_caller); the method itself identifies the caller.
   */
  readonly kind: "local" | "credential" | "bound" | "message";
  readonly principal: string;
  /**
   * The organization that owns the records that the call creates; absent for none. A configured credential names the
   * organization. A service of the platform names the organization of the record that the service works on. For a
   * caller with a public key, use {@link organizationOf}.
   */
  readonly organization?: string;
  /** The roles that a file grants to the caller's secret, login token or client certificate; absent without a grant. */
  readonly roles?: readonly RoleName[];
  /** The roles that the identities file grants for the records of the caller's organization; absent for none. */
  readonly organizationRoles?: readonly RoleName[];
  /** True if the identities file maps the caller's login token or client certificate to the principal. */
  readonly isAttested?: true;
  /**
   * The SPIFFE id of the client certificate that authenticated the caller; absent for other credentials. Depute's
   * processes forward the id to each other.
   */
  readonly spiffeId?: string;
  /** The token of `Authorization: DPoP <token>`, for kind `bound`. */
  readonly token?: string;
  /** The holder proof of the `DPoP` header (RFC 9449), for kind `bound`. */
  readonly proof?: string;
  /** The HTTP method that a holder proof must name: the method with which the client called the platform. */
  readonly htm: string;
  /** The URL that a holder proof must name: the URL that the client called, without its query. */
  readonly htu: string;
}

/** The principal of callers without credentials. */
export const LOCAL_PRINCIPAL = "local";

/**
 * Headers that Depute's own processes add to calls between them. A process trusts these headers only from
 * another Depute process.
 */
export const HOP = {
  /** The HTTP method that the client used. */
  htm: "depute-htm",
  /** The URL that the client called. */
  htu: "depute-htu",
  /** The secret that the platform's processes share. */
  internal: "depute-internal",
  /**
   * The origin of a call. The only value is `service`, for a call that a service makes on its own behalf. This header
   * is never copied from a caller's request.
   */
  origin: "depute-origin",
  /**
   * The organization that owns the records of a service's own call, percent-encoded. This header is never copied from a
   * caller's request.
   */
  organization: "depute-organization",
  /**
   * The SPIFFE id of the client's certificate; `none` if the certificate has no SPIFFE id, absent if the client has no
   * certificate.
   */
  certificate: "depute-client-certificate",
  /** The network address of the client, percent-encoded. */
  address: "depute-client-address",
  /** The protocol of the client's request, percent-encoded. */
  wire: "depute-wire",
  /** The principal on whose behalf a service makes its own call, percent-encoded. */
  onBehalfOf: "depute-on-behalf-of",
} as const;

/** The value of {@link HOP.certificate} for a certificate without a SPIFFE id. */
const NO_SPIFFE_ID = "none";

/** Sets the header {@link HOP.certificate}. Does nothing if `spiffeId` is undefined. */
export function forwardCertificate(headers: Headers, spiffeId: string | undefined): void {
  if (spiffeId !== undefined) headers.set(HOP.certificate, spiffeId || NO_SPIFFE_ID);
}

export const callerKey: ContextKey<Caller | undefined> = createContextKey<Caller | undefined>(undefined, {
  description: "caller",
});

/**
 * Returns the caller of the call that a handler answers.
 *
 * @throws DeputeError UNAUTHENTICATED when no interceptor set a caller: a missing check must fail closed
 */
export function callerOf(context: WithValues): Caller {
  const caller = context.values.get(callerKey);
  if (caller === undefined) throw new DeputeError(ErrorReason.UNAUTHENTICATED, "the call has no caller");
  return caller;
}

const credentialsKey: ContextKey<Credentials> = createContextKey<Credentials>(noCredentials, {
  description: "credentials",
});

/**
 * Returns the organization that owns the records of a proven principal, as the credentials file names it.
 *
 * @returns empty for none
 */
export function organizationOf(context: WithValues, principal: string): string {
  return context.values.get(credentialsKey).organizationOf(principal);
}

/**
 * Returns the roles that the credentials file or the identities file grants to the caller of a call; empty for none.
 *
 * @param principal the caller's proven principal
 */
export function grantedRolesOf(context: WithValues, principal: string): readonly RoleName[] {
  const { values } = context;
  return grantedRoles(values.get(callerKey) ?? {}, principal, values.get(credentialsKey)) ?? [];
}

/** Returns the organization of a call's caller. Empty if the caller has none, or if its principal is not proven yet. */
export function organizationOfCaller(context: WithValues): string {
  const { organization } = context.values.get(callerKey) ?? {};
  return organization ?? organizationOf(context, context.values.get(principalKey));
}

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
    const [scheme, token] = split(authorization);
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
  const [scheme, credential] = apiKey === null ? split(authorization) : ["bearer", apiKey.trim()];
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
    const [scheme, token] = split(presented.header.get("authorization"));
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
  const header = new Headers();
  for (const name of ["authorization", "x-api-key", "dpop"]) {
    const value = headers[name];
    if (typeof value === "string") header.set(name, value);
  }
  return { header, htm: "", htu: "", trusted: false, certificate };
}

/**
 * Splits an `Authorization` header into the scheme, in lower case, and the credentials. Both are empty if the header is
 * absent.
 */
function split(authorization: string | null): [scheme: string, credential: string] {
  if (authorization === null) return ["", ""];
  const match = /^([!-~]+) +([!-~]+) *$/.exec(authorization);
  if (match === null) throw unauthenticated("the authorization header must be `<scheme> <credentials>`");
  return [match[1]?.toLowerCase() ?? "", match[2] ?? ""];
}

function unauthenticated(message: string): DeputeError {
  return new DeputeError(ErrorReason.UNAUTHENTICATED, message);
}

/** The address at which clients reach a server. */
export interface Reach {
  /**
   * The URL under which clients reach the server, without a trailing slash. The URL may change when the server begins
   * to listen.
   */
  readonly publicUrl: string;
}

export interface CallerOptions extends AuthenticationOptions {
  reach: Reach;
  /** The secrets that the platform's processes share. */
  internalSecrets: Pick<InternalSecrets, "accepts">;
  /** Full names of services that need no credentials, such as `grpc.health.v1.Health`. */
  exempt: readonly string[];
}

/** Stores the Caller in the call's values, or refuses the call. */
export function callerInterceptor(options: CallerOptions): Interceptor {
  const exempt = new Set(options.exempt);
  return (next) => async (request) => {
    if (exempt.has(request.service.typeName)) return next(request);
    const { header, contextValues, requestMethod, method } = request;
    const trusted =
      contextValues.get(inProcessKey) || options.internalSecrets.accepts(header.get(HOP.internal));
    if (trusted) contextValues.set(trustedKey, true);
    const presented = {
      header,
      htm: requestMethod,
      htu: `${options.reach.publicUrl}/${method.parent.typeName}/${method.name}`,
      trusted,
      messageProves: hasOption(method, message_proves_caller) && getOption(method, message_proves_caller),
      certificate: contextValues.get(clientCertificateKey),
    };
    const proving = proveIdentity(options, presented);
    const caller = authenticate(options, presented, proving instanceof Promise ? await proving : proving);
    contextValues.set(callerKey, caller);
    contextValues.set(credentialsKey, options.credentials);
    return next(request);
  };
}
