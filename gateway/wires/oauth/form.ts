import { isObject, parseStrictJson } from "@depute/core";
import { OAuthFault } from "./errors.ts";

/** The parameters of a token request. (RFC 6749 section 4.5, RFC 8693 section 2.1) */
export interface TokenForm {
  /**
   * Returns the value of a parameter; empty if the parameter is absent or its value is empty (RFC 6749 section 3.2).
   */
  text(name: string): string;
  /** Returns all values of a parameter that may occur more than once. */
  all(name: string): readonly string[];
}

/** Parameters that may occur more than once. (RFC 8693 section 2.1) */
const REPEATABLE = new Set(["audience", "resource"]);
const MAX_PARAMETERS = 64;

/**
 * Reads the parameters of a token request.
 *
 * @throws OAuthFault invalid_request for a parameter that occurs twice, or for too many parameters
 */
export function readForm(body: Buffer): TokenForm {
  const parameters = new URLSearchParams(body.toString("utf8"));
  if (parameters.size > MAX_PARAMETERS)
    throw malformed(`the request must have at most ${MAX_PARAMETERS} parameters`);
  for (const name of new Set(parameters.keys())) {
    if (parameters.getAll(name).length > 1 && !REPEATABLE.has(name)) {
      throw malformed("each parameter must occur only once");
    }
  }
  return {
    text: (name) => parameters.get(name) ?? "",
    all: (name) => parameters.getAll(name).filter((value) => value !== ""),
  };
}

/**
 * Returns the value of a parameter as a whole number; undefined if the parameter is absent. Throws OAuthFault
 * invalid_request.
 */
export function numberOf(form: TokenForm, name: string): number | undefined {
  const text = form.text(name);
  if (text === "") return undefined;
  const value = Number(text);
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(value))
    throw malformed(`${name} must be a whole number`);
  return value;
}

/** A capability in `authorization_details`. */
export interface RequestedCapability {
  readonly namespace: string;
  readonly action: string;
  readonly resource: string;
}

/** The `type` of authorization details that name a DelegateOS capability. */
export const CAPABILITY_TYPE = "delegateos_capability";
const MAX_CAPABILITIES = 64;

/**
 * Returns the capabilities of `authorization_details` (RFC 9396 section 2). OAuth's `scope` cannot express them,
 * because a resource may contain any character.
 *
 * @throws OAuthFault invalid_request
 */
export function capabilitiesOf(form: TokenForm): RequestedCapability[] {
  const text = form.text("authorization_details");
  if (text === "") return [];
  const details = jsonOf(text);
  if (!Array.isArray(details) || details.length > MAX_CAPABILITIES) {
    throw malformed(`authorization_details must be a list of at most ${MAX_CAPABILITIES} capabilities`);
  }
  return details.map((detail: unknown, i) => {
    const { type, namespace, action, resource } = isObject(detail) ? detail : ({} as Record<string, unknown>);
    if (
      type !== CAPABILITY_TYPE ||
      typeof namespace !== "string" ||
      typeof action !== "string" ||
      typeof resource !== "string"
    ) {
      throw malformed(
        `authorization_details[${i}] must have the type ${CAPABILITY_TYPE}, a namespace, an action and a resource`,
      );
    }
    return { namespace, action, resource };
  });
}

function jsonOf(text: string): unknown {
  try {
    return parseStrictJson(text);
  } catch {
    throw malformed("authorization_details must be JSON");
  }
}

function malformed(description: string): OAuthFault {
  return new OAuthFault("invalid_request", description);
}
