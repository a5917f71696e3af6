/** Maximum number of characters of an organization's name, as in the registry's contracts. */
const MAX_ORGANIZATION = 128;

/** The roles that an identity may have: the values of depute.rpc.v1.Role that callers can have, in lower case. */
export const ROLES = [
  "user",
  "agent",
  "orchestrator",
  "reviewer",
  "spender",
  "minter",
  "auditor",
  "operator",
  "platform",
] as const;

export type RoleName = (typeof ROLES)[number];

/** The roles that an identity may have for the records of its organization only. */
export const ORGANIZATION_ROLES = ["auditor"] as const satisfies readonly RoleName[];

/** The accepted algorithms of signatures (RFC 7518 section 3.1, RFC 8037, RFC 9864). All are asymmetric. */
export const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
] as const;

const HOLDER = {
  principal: {
    description:
      "The principal in whose name the identity calls. {subject} stands for the subject of the token.",
    type: "string",
    pattern: "^[^\\s{}]+(?::\\{subject\\})?$",
    maxLength: 256,
  },
  organization: {
    description: "The organization that owns the records of the principal.",
    type: "string",
    minLength: 1,
    maxLength: MAX_ORGANIZATION,
  },
  roles: {
    description: "The roles of the identity.",
    type: "array",
    items: { type: "string", enum: ROLES },
    uniqueItems: true,
    maxItems: ROLES.length,
  },
  organizationRoles: {
    description: "The roles of the identity for the records of its organization alone, beside `roles`.",
    type: "array",
    items: { type: "string", enum: ORGANIZATION_ROLES },
    uniqueItems: true,
    maxItems: ORGANIZATION_ROLES.length,
  },
} as const;

const MINT = {
  description:
    "The largest token that the identity may get in exchange for a token of its issuer. Absent: none, unless the identity has the role minter.",
  type: "object",
  properties: {
    capabilities: {
      description: "The capabilities. A resource is a pattern.",
      type: "array",
      items: {
        type: "object",
        properties: {
          namespace: { type: "string", minLength: 1, maxLength: 128 },
          action: { type: "string", minLength: 1, maxLength: 128 },
          resource: { type: "string", minLength: 1, maxLength: 1024 },
        },
        required: ["namespace", "action", "resource"],
        additionalProperties: false,
      },
      minItems: 1,
      maxItems: 64,
    },
    maxBudgetMicrocents: {
      description: "The largest budget, in microcents. A token without a budget counts nowhere.",
      type: "integer",
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
    },
    maxLifetimeSeconds: {
      description: "The longest lifetime, in seconds. Default: 3600.",
      type: "integer",
      minimum: 1,
      maximum: 86_400,
    },
    maxChainDepth: {
      description: "The largest number of further delegations. Default: 0.",
      type: "integer",
      minimum: 0,
      maximum: 32,
    },
  },
  required: ["capabilities", "maxBudgetMicrocents"],
  additionalProperties: false,
} as const;

const TOKEN_IDENTITY = {
  description:
    "The tokens of one subject, or of all subjects with a prefix. The first identity that matches counts.",
  type: "object",
  properties: {
    subject: {
      description: "The claim `sub`. A final * stands for any further characters.",
      type: "string",
      minLength: 1,
      maxLength: 256,
      pattern: "^[^*]*\\*?$",
    },
    claims: {
      description: "Claims that the token must have. A claim that is an array must contain the value.",
      type: "object",
      additionalProperties: { type: "string", minLength: 1, maxLength: 256 },
      minProperties: 1,
      maxProperties: 16,
    },
    ...HOLDER,
    mint: MINT,
  },
  required: ["subject", "principal"],
  additionalProperties: false,
} as const;

const ISSUER = {
  description:
    "An issuer of OpenID Connect or OAuth whose JSON Web Tokens are accepted as Bearer credentials.",
  type: "object",
  properties: {
    issuer: {
      description: "The claim `iss`, and the address of the discovery document. https, or http on loopback.",
      type: "string",
      maxLength: 512,
    },
    audiences: {
      description: "The claim `aud` has to name one of these audiences.",
      type: "array",
      items: { type: "string", minLength: 1, maxLength: 512 },
      minItems: 1,
      maxItems: 64,
    },
    jwksUri: {
      description: "The address of the public keys. Default: the one in the discovery document.",
      type: "string",
      maxLength: 512,
    },
    caFile: {
      description: "PEM file with the authorities of the issuer's certificate. Default: those of Node.js.",
      type: "string",
      minLength: 1,
    },
    tokenFile: {
      description:
        "File with the Bearer token that the issuer requires, such as a service account token of Kubernetes.",
      type: "string",
      minLength: 1,
    },
    algorithms: {
      description: "The accepted algorithms. Default: RS256, PS256, ES256, ES384, EdDSA, Ed25519.",
      type: "array",
      items: { type: "string", enum: ALGORITHMS },
      minItems: 1,
      uniqueItems: true,
    },
    clockSkewSeconds: {
      description: "Seconds by which the issuer's clock may differ. Default: 30.",
      type: "integer",
      minimum: 0,
      maximum: 300,
    },
    identities: {
      description: "The identities that the issuer's tokens prove.",
      type: "array",
      items: TOKEN_IDENTITY,
      minItems: 1,
      maxItems: 10_000,
    },
  },
  required: ["issuer", "audiences", "identities"],
  additionalProperties: false,
} as const;

/** The JSON Schema of the file of DEPUTE_IDENTITIES_FILE. docs/identities.schema.json has the same text. */
export const IDENTITIES_SCHEMA = {
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "Identities of a Depute platform",
  description: "Maps identities that others attest to principals, organizations and roles.",
  type: "object",
  properties: {
    $schema: { description: "The address of this schema, for editors.", type: "string" },
    issuers: { type: "array", items: ISSUER, maxItems: 32 },
    certificates: {
      description: "The client certificates that authenticate their callers.",
      type: "array",
      items: {
        type: "object",
        properties: {
          spiffeId: {
            description: "The SPIFFE id in the certificate: its only URI as subject alternative name.",
            type: "string",
            pattern: "^spiffe://[a-z0-9._-]{1,255}(/[A-Za-z0-9._-]+)+$",
            maxLength: 2048,
          },
          ...HOLDER,
          principal: {
            ...HOLDER.principal,
            description: "The principal in whose name the identity calls.",
            pattern: "^[^\\s{}]+$",
          },
        },
        required: ["spiffeId", "principal"],
        additionalProperties: false,
      },
      maxItems: 10_000,
    },
  },
  additionalProperties: false,
} as const;
