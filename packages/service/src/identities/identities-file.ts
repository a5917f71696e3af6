import { Ajv, type ValidateFunction } from "ajv";
import { IDENTITIES_SCHEMA, type RoleName } from "./identities-schema.ts";

/**
 * The bounds of the DelegateOS tokens that an identity may get in exchange for its login token. IDENTITIES_SCHEMA has
 * the defaults.
 */
export interface MintBounds {
  readonly capabilities: readonly {
    readonly namespace: string;
    readonly action: string;
    readonly resource: string;
  }[];
  readonly maxBudgetMicrocents: number;
  readonly maxLifetimeSeconds?: number;
  readonly maxChainDepth?: number;
}

/** The principal to which the identities file maps an identity, with organization, roles and bounds. */
export interface IdentityHolder {
  readonly principal: string;
  /** The organization that owns the records of the principal; absent for none. */
  readonly organization?: string;
  readonly roles?: readonly RoleName[];
  /** The roles of the principal for the records of its organization only; absent for none. */
  readonly organizationRoles?: readonly RoleName[];
  readonly mint?: MintBounds;
}

/** The principal for login tokens of one subject, or of all subjects with a prefix. */
export interface TokenIdentity extends IdentityHolder {
  /** The required value of the claim `sub`; a final `*` matches any characters. */
  readonly subject: string;
  /** Claims that the login token must have, with their values; absent for none. */
  readonly claims?: Readonly<Record<string, string>>;
}

/** An issuer as the file describes it; see IDENTITIES_SCHEMA for the meaning of the members. */
export interface IssuerEntry {
  readonly issuer: string;
  readonly audiences: readonly string[];
  readonly jwksUri?: string;
  readonly caFile?: string;
  readonly tokenFile?: string;
  readonly algorithms?: readonly string[];
  readonly clockSkewSeconds?: number;
  readonly identities: readonly TokenIdentity[];
}

export interface CertificateIdentity extends IdentityHolder {
  readonly spiffeId: string;
}

/** The content of the file of DEPUTE_IDENTITIES_FILE. */
export interface IdentitiesFile {
  readonly issuers: readonly IssuerEntry[];
  readonly certificates: readonly CertificateIdentity[];
}

/** Maximum number of characters of an identities file. */
const MAX_FILE_CHARACTERS = 8 * 1024 * 1024;
/** Maximum number of characters of a principal. */
const MAX_PRINCIPAL = 256;
/** The placeholder in a principal that is replaced by the login token's subject. */
const SUBJECT = "{subject}";
const LOOPBACK = new Set(["127.0.0.1", "localhost", "[::1]"]);

let compiled: ValidateFunction<Partial<IdentitiesFile>> | undefined;

/** Returns the check of an identities file. It is compiled at the first file, because most processes have none. */
function schemaCheck(): ValidateFunction<Partial<IdentitiesFile>> {
  compiled ??= new Ajv({ strict: true }).compile<Partial<IdentitiesFile>>(IDENTITIES_SCHEMA);
  return compiled;
}

/**
 * Parses the text of an identities file.
 *
 * @param organizationOf returns the organization that the credentials file names for a principal; empty for none
 * @throws Error that names the first fault by its JSON pointer; SyntaxError for a text that is not JSON
 */
export function parseIdentities(
  text: string,
  organizationOf: (principal: string) => string = () => "",
): IdentitiesFile {
  if (text.length > MAX_FILE_CHARACTERS)
    throw new Error(`the file has more than ${MAX_FILE_CHARACTERS} characters`);
  const content: unknown = JSON.parse(text);
  const isValid = schemaCheck();
  if (!isValid(content)) {
    const [{ instancePath = "", message = "", params = {} } = {}] = isValid.errors ?? [];
    const { additionalProperty } = params as { additionalProperty?: string };
    const member = additionalProperty === undefined ? "" : `: ${additionalProperty.slice(0, 64)}`;
    throw new Error(`${instancePath || "/"} ${message}${member}`);
  }
  const { issuers = [], certificates = [] } = content;
  const organizations = new Map<string, string>();
  const check = ({ principal, organization = "", organizationRoles }: IdentityHolder, path: string) => {
    if (organizationRoles !== undefined && organization === "")
      throw new Error(`${path}/organizationRoles require an organization: name an organization`);
    if (principal === "local")
      throw new Error(
        `${path}/principal is the principal of callers without credentials: use another principal`,
      );
    const known = organizations.get(principal) ?? (organizationOf(principal) || organization);
    if (known !== organization)
      throw new Error(
        `${path}/organization: the principal has another organization elsewhere; name the same one`,
      );
    organizations.set(principal, organization);
  };
  const names = new Set<string>();
  for (const [index, { issuer, jwksUri, identities }] of issuers.entries()) {
    const path = `/issuers/${index}`;
    assertAddress(issuer, `${path}/issuer`);
    if (jwksUri !== undefined) assertAddress(jwksUri, `${path}/jwksUri`);
    if (names.has(issuer)) throw new Error(`${path}/issuer occurs twice: name each issuer once`);
    names.add(issuer);
    for (const [at, identity] of identities.entries()) check(identity, `${path}/identities/${at}`);
  }
  const ids = new Set<string>();
  for (const [index, identity] of certificates.entries()) {
    const path = `/certificates/${index}`;
    if (ids.has(identity.spiffeId)) throw new Error(`${path}/spiffeId occurs twice: name each id once`);
    ids.add(identity.spiffeId);
    check(identity, path);
  }
  return { issuers, certificates };
}

/**
 * Whether a text can be the address of an issuer's document: an https URL, or an http URL on loopback. The URL must
 * contain neither credentials nor a fragment.
 */
export function isIssuerAddress(address: string): boolean {
  if (!URL.canParse(address)) return false;
  const { protocol, hostname, username, password, hash } = new URL(address);
  if (username !== "" || password !== "" || hash !== "") return false;
  return protocol === "https:" || (protocol === "http:" && LOOPBACK.has(hostname));
}

function assertAddress(address: string, path: string): void {
  if (!isIssuerAddress(address))
    throw new Error(`${path} is not an address of an issuer: use https, or http on loopback`);
}

/**
 * Returns the principal of a login token: that of the issuer's first identity whose subject and claims match. Undefined
 * if no identity matches, or if the principal would be malformed.
 *
 * @param claims the verified claims of the login token
 */
export function holderOfClaims(
  identities: readonly TokenIdentity[],
  subject: string,
  claims: Readonly<Record<string, unknown>>,
): IdentityHolder | undefined {
  const found = identities.find(
    (identity) => matchesSubject(identity.subject, subject) && hasClaims(claims, identity.claims ?? {}),
  );
  if (found === undefined) return undefined;
  const principal = found.principal.replace(SUBJECT, () => subject);
  // Contracts refuse a principal that is longer, or has white space or control characters. Their refusal would come
  // later, and would blame the request.
  if (principal.length > MAX_PRINCIPAL || /[\s\p{C}]/u.test(principal)) return undefined;
  return { ...found, principal };
}

function matchesSubject(pattern: string, subject: string): boolean {
  return pattern.endsWith("*") ? subject.startsWith(pattern.slice(0, -1)) : subject === pattern;
}

function hasClaims(
  claims: Readonly<Record<string, unknown>>,
  wanted: Readonly<Record<string, string>>,
): boolean {
  return Object.entries(wanted).every(([name, value]) => {
    const claim = Object.hasOwn(claims, name) ? claims[name] : undefined;
    return Array.isArray(claim) ? claim.includes(value) : claim === value;
  });
}
