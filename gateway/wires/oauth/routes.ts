import type { JsonObject } from "@bufbuild/protobuf";
import { type Duration, durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { SubjectTokenKind } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { ownHeaders } from "@depute/service";
import type { Clients } from "../../edge/clients.ts";
import { json, type Wire, type WireRequest } from "../../edge/route.ts";
import type { WireDeps } from "../../edge/wire-deps.ts";
import { OAuthFault, toOAuthError } from "./errors.ts";
import { CAPABILITY_TYPE, capabilitiesOf, numberOf, readForm, type TokenForm } from "./form.ts";

/** The grant of token exchange. (RFC 8693 section 2.1) */
export const EXCHANGE_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange";
/** The token type of DelegateOS tokens. (RFC 8693 section 3) */
export const DCT_TYPE = "urn:depute:oauth:token-type:dct";

const JWT_TYPE = "urn:ietf:params:oauth:token-type:jwt";
const ACCESS_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:access_token";

const SUBJECT_KINDS: Readonly<Record<string, SubjectTokenKind>> = {
  [JWT_TYPE]: SubjectTokenKind.JWT,
  [ACCESS_TOKEN_TYPE]: SubjectTokenKind.JWT,
  "urn:ietf:params:oauth:token-type:id_token": SubjectTokenKind.JWT,
  "urn:ietf:params:oauth:token-type:id-jag": SubjectTokenKind.ID_JAG,
};

const FORM = "application/x-www-form-urlencoded";
const TOKEN_PATH = "/oauth/token";
const KEYS_PATH = "/.well-known/jwks.json";
/**
 * Caches may store the keys for five minutes. The platform publishes a new key an hour before it signs with this key,
 * so every cache has the key in time.
 */
const KEYS_CACHED = "public, max-age=300";
/** Maximum number of bytes of a token request. */
const MAX_FORM_BYTES = 65_536;
/** Headers that forbid caches to store an answer that contains tokens. (RFC 6749 section 5.1) */
const NO_STORE = { "cache-control": "no-store", pragma: "no-cache" };
const MS_PER_SECOND = 1000;

/** Serves OAuth's token endpoint, its keys and its metadata. (RFC 8693, RFC 7517, RFC 8414) */
export function oauthWire({ tokens }: Pick<Clients, "tokens">, deps: Pick<WireDeps, "publicUrl">): Wire {
  return {
    name: "oauth",
    claims: ["/oauth"],
    routes: [
      {
        method: "POST",
        path: TOKEN_PATH,
        takes: [FORM],
        maxBodyBytes: MAX_FORM_BYTES,
        async answer(request) {
          const form = readForm(request.body?.bytes ?? Buffer.alloc(0));
          return json(await answered(tokens, form, request), 200, NO_STORE);
        },
      },
      {
        method: "GET",
        path: KEYS_PATH,
        async answer({ call: { signal, requestId } }) {
          const { jwks } = await tokens.getSigningKeys({}, { signal, headers: ownHeaders(requestId) });
          return json(JSON.parse(jwks) as JsonObject, 200, { "cache-control": KEYS_CACHED });
        },
      },
      {
        method: "GET",
        path: "/.well-known/oauth-authorization-server",
        answer: async () => json(metadataOf(deps.publicUrl)),
      },
    ],
    toError: toOAuthError,
    headersOf: (path) => (path === TOKEN_PATH ? NO_STORE : {}),
  };
}

/** Returns the metadata of the token endpoint. (RFC 8414 section 2, RFC 9449 section 5.1, RFC 9396 section 10) */
function metadataOf(issuer: string): JsonObject {
  return {
    issuer,
    token_endpoint: `${issuer}${TOKEN_PATH}`,
    jwks_uri: `${issuer}${KEYS_PATH}`,
    grant_types_supported: [EXCHANGE_GRANT],
    response_types_supported: [],
    token_endpoint_auth_methods_supported: ["none"],
    dpop_signing_alg_values_supported: ["EdDSA", "Ed25519"],
    authorization_details_types_supported: [CAPABILITY_TYPE],
  };
}

/**
 * Answers a token exchange. If the subject token is a DelegateOS token, the answer contains a JWT. For any other
 * subject token, the answer contains a DelegateOS token.
 */
function answered(tokens: Clients["tokens"], form: TokenForm, request: WireRequest): Promise<JsonObject> {
  if (form.text("grant_type") !== EXCHANGE_GRANT) {
    throw new OAuthFault("unsupported_grant_type", `grant_type must be ${EXCHANGE_GRANT}`);
  }
  if (form.text("actor_token") !== "") {
    throw new OAuthFault("invalid_request", "actor_token is not supported; the holder proof names the actor");
  }
  if (form.text("scope") !== "") {
    throw new OAuthFault(
      "invalid_scope",
      "scopes are not supported; name capabilities in authorization_details",
    );
  }
  const isOwn = form.text("subject_token_type") === DCT_TYPE;
  return isOwn ? projected(tokens, form, request) : exchanged(tokens, form, request);
}

/** Exchanges a DelegateOS token for a projection: a JWT that one resource server accepts. */
async function projected(
  tokens: Clients["tokens"],
  form: TokenForm,
  request: WireRequest,
): Promise<JsonObject> {
  const type = form.text("requested_token_type") || JWT_TYPE;
  if (type !== JWT_TYPE && type !== ACCESS_TOKEN_TYPE) {
    throw new OAuthFault(
      "invalid_request",
      `requested_token_type must be ${JWT_TYPE} or ${ACCESS_TOKEN_TYPE}`,
    );
  }
  if (form.text("authorization_details") !== "") {
    throw new OAuthFault(
      "invalid_request",
      "authorization_details are not supported for a JWT; to grant less, attenuate the token",
    );
  }
  const audiences = [...form.all("resource"), ...form.all("audience")];
  const [audience] = audiences;
  if (audience === undefined || audiences.length > 1) {
    throw new OAuthFault("invalid_target", "resource or audience must name one resource server");
  }
  const answer = await tokens.projectToken(
    {
      token: { token: form.text("subject_token"), format: "delegateos-sjt-v1" },
      proof: proofIn(request),
      audience,
      ...lifetimeIn(form),
    },
    withoutCredentials(request),
  );
  return {
    access_token: answer.jwt,
    issued_token_type: type,
    token_type: "DPoP",
    expires_in: secondsOf(answer.lifetime),
  };
}

async function exchanged(
  tokens: Clients["tokens"],
  form: TokenForm,
  request: WireRequest,
): Promise<JsonObject> {
  const subjectTokenKind = SUBJECT_KINDS[form.text("subject_token_type")];
  if (subjectTokenKind === undefined) {
    throw new OAuthFault(
      "invalid_request",
      `subject_token_type must be one of ${Object.keys(SUBJECT_KINDS).join(", ")}`,
    );
  }
  const requested = form.text("requested_token_type");
  if (requested !== "" && requested !== DCT_TYPE) {
    throw new OAuthFault("invalid_request", `requested_token_type must be ${DCT_TYPE}`);
  }
  const budget = numberOf(form, "max_budget_microcents");
  const depth = numberOf(form, "max_chain_depth");
  const audiences = [...form.all("resource"), ...form.all("audience")];
  const answer = await tokens.exchangeToken(
    {
      subjectToken: form.text("subject_token"),
      subjectTokenKind,
      proof: proofIn(request),
      capabilities: capabilitiesOf(form),
      contractId: form.text("contract_id"),
      ...lifetimeIn(form),
      ...(budget !== undefined && { maxBudgetMicrocents: BigInt(budget) }),
      ...(depth !== undefined && { maxChainDepth: depth }),
      ...(audiences.length > 0 && { binding: { audiences } }),
    },
    withoutCredentials(request),
  );
  return {
    access_token: answer.token?.token ?? "",
    issued_token_type: DCT_TYPE,
    token_type: "DPoP",
    expires_in: secondsOf(answer.lifetime),
    authorization_details: answer.capabilities.map(({ namespace, action, resource }) => ({
      ...{ type: CAPABILITY_TYPE, namespace, action, resource },
    })),
    delegation_id: answer.delegationId,
    revocation_id: answer.revocationId,
  };
}

function lifetimeIn(form: TokenForm): { readonly lifetime?: Duration } {
  const seconds = numberOf(form, "requested_lifetime");
  return seconds === undefined ? {} : { lifetime: durationFromMs(seconds * MS_PER_SECOND) };
}

function secondsOf(lifetime: Duration | undefined): number {
  return lifetime === undefined ? 0 : Math.floor(durationMs(lifetime) / MS_PER_SECOND);
}

function proofIn({ headers: { dpop } }: WireRequest): string {
  if (typeof dpop === "string") return dpop;
  throw new OAuthFault("invalid_dpop_proof", "the header DPoP must contain a proof of the holder's key");
}

/**
 * Returns the call's options without credential headers. The request message already contains the proof and the token
 * to exchange. If the headers also contained the proof, the service would see it twice, and refuse it.
 */
function withoutCredentials({ call: { asCaller } }: WireRequest) {
  const headers = new Headers(asCaller.headers);
  for (const name of ["authorization", "dpop", "x-api-key"]) headers.delete(name);
  return { ...asCaller, headers };
}
