import { createHash } from "node:crypto";
import { ROLES, type RoleName } from "./identities/identities-schema.ts";

/** The principal that a configured secret belongs to, with its organization and roles. */
export interface CredentialHolder {
  readonly principal: string;
  /** The organization that owns the records of this principal. Maximum 128 characters; empty for none. */
  readonly organization: string;
  /** The roles that the credentials file grants to the principal; absent without a grant. */
  readonly roles?: readonly RoleName[];
}

/**
 * The configured Bearer and X-API-Key secrets and the principals that they belong to. Memory holds only the digests of
 * the secrets.
 */
export interface Credentials {
  /** Returns the principal of a secret, with its organization and roles; undefined for an unknown secret. */
  holderOf(secret: string): CredentialHolder | undefined;
  /**
   * Returns the organization of a principal; empty for none. The principal may be a public key, which has no secret.
   */
  organizationOf(principal: string): string;
  /**
   * Returns the roles that the credentials file grants to a principal, which may be a public key.
   *
   * @returns undefined without a grant
   */
  rolesOf(principal: string): readonly RoleName[] | undefined;
  /** Whether a configured secret belongs to the principal. */
  names(principal: string): boolean;
  readonly size: number;
}

/** The form of a principal that is a public key: 32 bytes in base64url. */
const KEY = /^[A-Za-z0-9_-]{43}$/;

/** Maximum length of an organization's name in characters, as in the registry's contracts. */
const MAX_ORGANIZATION = 128;

const HEX_SHA256 = /^[0-9a-f]{64}$/;

/** The credentials of a server without any configured secret. */
export const noCredentials: Credentials = {
  holderOf: () => undefined,
  organizationOf: () => "",
  rolesOf: () => undefined,
  names: () => false,
  size: 0,
};

/**
 * Reads a JSON array of `{principal, sha256, organization, roles}`: `sha256` is the digest of the secret in lower-case
 * hex. Organization and roles are optional. An entry for a public key with an organization or roles needs no digest,
 * because the caller sends holder proofs.
 *
 * @throws Error that names the invalid entry by its index. The message never quotes the text, which may contain
 * secrets.
 */
export function parseCredentials(json: string): Credentials {
  const entries = parsedJson(json);
  if (!Array.isArray(entries)) throw new Error("credentials: must be a JSON array");
  const holders = new Map<string, CredentialHolder>();
  const organizations = new Map<string, string>();
  const roles = new Map<string, readonly RoleName[] | undefined>();
  entries.forEach((entry: unknown, index) => {
    const {
      principal,
      sha256,
      organization = "",
      ...more
    } = (entry ?? {}) as Partial<Record<string, unknown>>;
    if (typeof principal !== "string" || principal === "") {
      throw new Error(`credentials[${index}].principal: must be a text`);
    }
    if (typeof organization !== "string" || [...organization].length > MAX_ORGANIZATION) {
      throw new Error(
        `credentials[${index}].organization: must be a text of at most ${MAX_ORGANIZATION} characters`,
      );
    }
    if ((organizations.get(principal) ?? organization) !== organization) {
      throw new Error(
        `credentials[${index}].organization: another entry names another organization for the principal; name the same one`,
      );
    }
    organizations.set(principal, organization);
    const granted = readRoles(more.roles, `credentials[${index}].roles`);
    if (roles.has(principal) && String(roles.get(principal)) !== String(granted)) {
      throw new Error(
        `credentials[${index}].roles: another entry grants the principal other roles; grant the same roles in each entry`,
      );
    }
    roles.set(principal, granted);
    const isGranted = organization !== "" || granted !== undefined;
    if (sha256 === undefined && isGranted && KEY.test(principal)) return;
    if (typeof sha256 !== "string" || !HEX_SHA256.test(sha256)) {
      throw new Error(`credentials[${index}].sha256: must be 64 lower-case hex digits`);
    }
    if (holders.has(sha256))
      throw new Error(
        `credentials[${index}].sha256: another entry has the same secret; use each secret once`,
      );
    holders.set(sha256, { principal, organization, ...(granted && { roles: granted }) });
  });
  const principals = new Set([...holders.values()].map(({ principal }) => principal));
  return {
    // The keys of `holders` are digests. Therefore the duration of this look-up reveals nothing about a secret.
    holderOf: (secret) => holders.get(sha256Hex(secret)),
    organizationOf: (principal) => organizations.get(principal) ?? "",
    rolesOf: (principal) => roles.get(principal),
    names: (principal) => principals.has(principal),
    size: holders.size,
  };
}

/**
 * Reads a list of roles. Returns undefined if the value is absent.
 *
 * @throws Error that names the field
 */
function readRoles(value: unknown, field: string): readonly RoleName[] | undefined {
  if (value === undefined) return undefined;
  const isRole = (each: unknown): each is RoleName => (ROLES as readonly unknown[]).includes(each);
  if (Array.isArray(value) && value.every(isRole)) return [...new Set(value)].sort();
  throw new Error(`${field}: must be a list of ${ROLES.join(", ")}`);
}

function sha256Hex(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function parsedJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    // The message of JSON.parse quotes the text, so this error does not repeat that message.
    throw new Error("credentials: must be a JSON array, but the text is not JSON");
  }
}
