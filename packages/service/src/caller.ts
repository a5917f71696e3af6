import { type ContextKey, createContextKey } from "@connectrpc/connect";
import { DeputeError, ErrorReason } from "@depute/core";
import type { WithValues } from "./call-values.ts";
import type { Credentials } from "./credentials.ts";

/** Who calls. */
export interface Caller {
  /**
   * `local`: no credentials were asked for; the caller may act for any agent that it names.
   * `credential`: a configured secret; the principal is whom it belongs to.
   * `bound`: a token or a holder proof, kept as presented. Nothing of it is verified here, so the principal is empty
   * until the tokens service has said whose it is.
   * `message`: no credentials, where they are required, to a method whose request can prove its sender
   * (depute.auth.v1.message_proves_caller). Nothing is known of the caller until the method has looked.
   */
  readonly kind: "local" | "credential" | "bound" | "message";
  readonly principal: string;
  /** The token of `Authorization: DPoP <token>`, for kind `bound`. */
  readonly token?: string;
  /** The holder proof of the `DPoP` header (RFC 9449), for kind `bound`. */
  readonly proof?: string;
  /** The method that a proof must name: of the request as it reached the platform. */
  readonly htm: string;
  /** The address that a proof must name: of the request as it reached the platform, without its query. */
  readonly htu: string;
}

/** The principal of callers without credentials. */
export const LOCAL_PRINCIPAL = "local";

/** Headers of a hop between Depute's own processes; a process believes them only of another one of its own. */
export const HOP = {
  /** The method that the wire's client used. */
  htm: "depute-htm",
  /** The address that the wire's client called. */
  htu: "depute-htu",
  /** The secret that the platform's processes share. */
  internal: "depute-internal",
  /** `service`: the call is a service's own and made for no caller. Never copied from a caller's request. */
  origin: "depute-origin",
} as const;

export const callerKey: ContextKey<Caller | undefined> = createContextKey<Caller | undefined>(undefined, {
  description: "caller",
});

/**
 * Who makes the call that a handler answers.
 *
 * @throws DeputeError UNAUTHENTICATED when no interceptor said: what forgot to ask must not be let in
 */
export function callerOf(context: WithValues): Caller {
  const caller = context.values.get(callerKey);
  if (caller === undefined) throw new DeputeError(ErrorReason.UNAUTHENTICATED, "the call has no caller");
  return caller;
}

export interface AuthenticationOptions {
  /** `open`: a caller without credentials is `local`; `required`: it is refused. */
  mode: "open" | "required";
  credentials: Credentials;
}

/** What is looked at to tell who calls. */
export interface Presented {
  header: Headers;
  htm: string;
  htu: string;
  /** Whether the call is the platform's own: in process, or with its internal secret. */
  trusted: boolean;
  /** Whether the method's request can prove its sender. */
  messageProves?: boolean;
}

/**
 * Tells who calls. A caller that presents credentials is held to them, also where none are needed.
 *
 * @throws DeputeError UNAUTHENTICATED
 */
export function authenticate({ mode, credentials }: AuthenticationOptions, presented: Presented): Caller {
  const { header, trusted, messageProves = false } = presented;
  const htm = (trusted ? header.get(HOP.htm) : null) ?? presented.htm;
  const htu = (trusted ? header.get(HOP.htu) : null) ?? presented.htu;
  const authorization = header.get("authorization");
  const apiKey = header.get("x-api-key");
  const proof = header.get("dpop");

  if (apiKey !== null && (authorization !== null || proof !== null)) {
    throw unauthenticated("present one kind of credentials, not two");
  }
  const [scheme, credential] = apiKey === null ? split(authorization) : ["bearer", apiKey.trim()];
  switch (scheme) {
    case "": {
      if (proof !== null) return { kind: "bound", principal: "", proof, htm, htu };
      const own = trusted && header.get(HOP.origin) === "service";
      if (mode === "open" || own) return { kind: "local", principal: LOCAL_PRINCIPAL, htm, htu };
      if (messageProves) return { kind: "message", principal: "", htm, htu };
      throw unauthenticated("credentials are required");
    }
    case "bearer": {
      if (proof !== null)
        throw unauthenticated("a token with a holder proof is presented as `Authorization: DPoP`");
      const principal = credentials.principalOf(credential);
      if (principal === undefined) throw unauthenticated("the credentials are not known here");
      return { kind: "credential", principal, htm, htu };
    }
    case "dpop": {
      const bound = { kind: "bound", principal: "", token: credential, htm, htu } as const;
      return proof === null ? bound : { ...bound, proof };
    }
    default:
      throw unauthenticated("the authorization scheme is not one of Bearer, DPoP");
  }
}

/** Scheme in lower case, and credentials; both empty without the header. */
function split(authorization: string | null): [scheme: string, credential: string] {
  if (authorization === null) return ["", ""];
  const match = /^([!-~]+) +([!-~]+) *$/.exec(authorization);
  if (match === null) throw unauthenticated("the authorization header is not `<scheme> <credentials>`");
  return [match[1]?.toLowerCase() ?? "", match[2] ?? ""];
}

function unauthenticated(message: string): DeputeError {
  return new DeputeError(ErrorReason.UNAUTHENTICATED, message);
}
