import type { JsonObject } from "@bufbuild/protobuf";
import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { SubjectTokenKind } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import type { Clients } from "../../edge/clients.ts";
import { json, type Wire, type WireRequest } from "../../edge/route.ts";
import { OAuthFault, toOAuthError } from "./errors.ts";
import { CAPABILITY_TYPE, capabilitiesOf, numberOf, readForm, type TokenForm } from "./form.ts";

/** The grant of token exchange. (RFC 8693 section 2.1) */
export const EXCHANGE_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange";
/** The type of DelegateOS tokens. (RFC 8693 section 3) */
export const DCT_TYPE = "urn:depute:oauth:token-type:dct";

const SUBJECT_KINDS: Readonly<Record<string, SubjectTokenKind>> = {
  "urn:ietf:params:oauth:token-type:jwt": SubjectTokenKind.JWT,
  "urn:ietf:params:oauth:token-type:access_token": SubjectTokenKind.JWT,
  "urn:ietf:params:oauth:token-type:id_token": SubjectTokenKind.JWT,
  "urn:ietf:params:oauth:token-type:id-jag": SubjectTokenKind.ID_JAG,
};

const FORM = "application/x-www-form-urlencoded";
const TOKEN_PATH = "/oauth/token";
/** Maximum number of bytes of a token request. */
const MAX_FORM_BYTES = 65_536;
/** Answers with tokens are not stored. (RFC 6749 section 5.1) */
const NO_STORE = { "cache-control": "no-store", pragma: "no-cache" };
const MS_PER_SECOND = 1000;

/** Serves OAuth's token endpoint: the exchange of issuers' tokens for tokens of this platform. (RFC 8693) */
export function oauthWire({ tokens }: Pick<Clients, "tokens">): Wire {
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
          if (form.text("grant_type") !== EXCHANGE_GRANT) {
            throw new OAuthFault("unsupported_grant_type", `grant_type is not ${EXCHANGE_GRANT}`);
          }
          return json(await exchanged(tokens, form, request), 200, NO_STORE);
        },
      },
    ],
    toError: toOAuthError,
    headersOf: () => NO_STORE,
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
      `subject_token_type is not one of ${Object.keys(SUBJECT_KINDS).join(", ")}`,
    );
  }
  const requested = form.text("requested_token_type");
  if (requested !== "" && requested !== DCT_TYPE) {
    throw new OAuthFault("invalid_request", `requested_token_type is not ${DCT_TYPE}`);
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
  const { dpop: proof } = request.headers;
  if (typeof proof !== "string") {
    throw new OAuthFault("invalid_dpop_proof", "the header DPoP has no proof of the holder's key");
  }
  const lifetime = numberOf(form, "requested_lifetime");
  const budget = numberOf(form, "max_budget_microcents");
  const depth = numberOf(form, "max_chain_depth");
  const audiences = [...form.all("resource"), ...form.all("audience")];
  const answer = await tokens.exchangeToken(
    {
      subjectToken: form.text("subject_token"),
      subjectTokenKind,
      proof,
      capabilities: capabilitiesOf(form),
      contractId: form.text("contract_id"),
      ...(lifetime !== undefined && { lifetime: durationFromMs(lifetime * MS_PER_SECOND) }),
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
    expires_in: answer.lifetime === undefined ? 0 : Math.floor(durationMs(answer.lifetime) / MS_PER_SECOND),
    authorization_details: answer.capabilities.map(({ namespace, action, resource }) => ({
      ...{ type: CAPABILITY_TYPE, namespace, action, resource },
    })),
    delegation_id: answer.delegationId,
    revocation_id: answer.revocationId,
  };
}

/** The proof and the exchanged token are in the request; as credentials of the call they would count twice. */
function withoutCredentials({ call: { asCaller } }: WireRequest) {
  const headers = new Headers(asCaller.headers);
  for (const name of ["authorization", "dpop", "x-api-key"]) headers.delete(name);
  return { ...asCaller, headers };
}
