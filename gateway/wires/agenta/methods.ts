import type { DescMessage, JsonObject, JsonValue, MessageShape } from "@bufbuild/protobuf";
import {
  type ExecutionReceipt,
  ExecutionReceiptSchema,
} from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { ExecutionRequestSchema } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import { OfferSchema } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import { VerificationResultSchema } from "@depute/contracts/agenta/delegation/v0/verification_result_pb";
import { OfferStatus, type PublishedOffer } from "@depute/contracts/depute/registry/v1/offer_service_pb";
import {
  type Execution,
  type Settlement,
  type SettlementState,
  SettlementStateSchema,
} from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import {
  DeputeError,
  ErrorReason,
  formatTime,
  fromTimestamp,
  invalid,
  parseOffsetTime,
  randomUuid,
  toTimestamp,
} from "@depute/core";
import type { PathParameters } from "@depute/service";
import { encode } from "@depute/wire";
import type { Clients } from "../../edge/clients.ts";
import { hexOf } from "../../edge/hex.ts";
import type { WireCall } from "../../edge/wire-call.ts";
import type { AgentaMessage } from "./documents.ts";

/** A request as the methods of this wire receive it. */
interface AgentaRequest {
  readonly parameters: PathParameters;
  readonly query: URLSearchParams;
  readonly call: WireCall;
  /** Reads the document in the body, and checks it against its published schema. */
  read<Desc extends DescMessage>(message: AgentaMessage, schema: Desc): Promise<MessageShape<Desc>>;
  /** Reads the body of a call for which the protocol defines no document: an object, or nothing. */
  readObject(): Promise<JsonObject>;
}

interface Answer {
  readonly status: number;
  readonly body: JsonValue;
  readonly headers?: Record<string, string>;
}

export type Method = (wireRequest: AgentaRequest) => Promise<Answer>;

const PAGE_LIMIT = 200;

/** The address at which clients request and read executions. */
export const EXECUTIONS = "/agenta/execution_requests";

/** The methods of each address, by HTTP method. They make the same calls as a gRPC client. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a table of methods, each with a few lines of its own
export function agentaMethods(clients: Clients): Readonly<Record<string, Readonly<Record<string, Method>>>> {
  const { offers, executions, results } = clients;

  const withdraw: Method = async (wireRequest) => {
    const { id: offerId = "", version: offerVersion = "" } = wireRequest.parameters;
    const message = textOf(await wireRequest.readObject(), "reason");
    const { withdrawnCount: withdrawn } = await offers.withdrawOffer(
      { offerId, offerVersion, message },
      wireRequest.call.asCaller,
    );
    return ok({ offer_id: offerId, withdrawn_versions: withdrawn });
  };
  const readOffer: Method = async ({ parameters, call }) => {
    const { id: offerId = "", version: offerVersion = "" } = parameters;
    const { offer } = await offers.getOffer({ offerId, offerVersion }, call.asCaller);
    return offerAnswer(requireValue(offer), 200);
  };
  const execution = async (requestId: string, call: WireCall): Promise<Execution> => {
    const name = { case: "requestId", value: requestId } as const;
    return requireValue((await executions.getExecution({ name }, call.asCaller)).execution);
  };

  return {
    "/agenta/offers": {
      POST: async ({ read, call }) => {
        const offer = await read("offer", OfferSchema);
        // A new request id for each call is safe, because a repeated publication of an offer changes nothing.
        const request = { requestId: randomUuid(), offer };
        const published = requireValue((await offers.publishOffer(request, call.asCaller)).offer);
        return offerAnswer(published, 201);
      },
      GET: async ({ query, call }) => {
        const validAt = timeOf(query, "valid_at");
        const page = await offers.listOffers(
          {
            sellerAgentId: query.get("seller_agent_id") ?? "",
            organizationId: query.get("organization_id") ?? "",
            capability: query.get("capability") ?? "",
            buyerAgentId: query.get("buyer_agent_id") ?? "",
            ...(validAt !== undefined && { validAt: toTimestamp(validAt) }),
            ...pageOf(query),
          },
          call.asCaller,
        );
        const documents = page.offers.map(({ offer }) => encode(OfferSchema, requireValue(offer)));
        return ok({ offers: documents, ...cursor(page) });
      },
    },
    "/agenta/offers/{id}": { GET: readOffer, DELETE: withdraw },
    "/agenta/offers/{id}/withdraw": { POST: withdraw },
    "/agenta/offers/{id}/versions/{version}": { GET: readOffer, DELETE: withdraw },
    "/agenta/offers/{id}/versions/{version}/withdraw": { POST: withdraw },

    [EXECUTIONS]: {
      POST: async ({ read, call }) => {
        const request = await read("execution_request", ExecutionRequestSchema);
        const { receipt, repeatedRequest } = await executions.requestExecution({ request }, call.asCaller);
        const location = `${EXECUTIONS}/${encodeURIComponent(request.requestId)}`;
        return { ...receiptAnswer(receipt, repeatedRequest ? 200 : 201), headers: { location } };
      },
      GET: async ({ query, call }) => {
        const { receipts, nextPageToken } = await executions.listExecutions(
          { party: partyOf(query), ...pageOf(query) },
          call.asCaller,
        );
        const documents = receipts.map((receipt) => encode(ExecutionReceiptSchema, receipt));
        return ok({ receipts: documents, ...cursor({ nextPageToken }) });
      },
    },
    [`${EXECUTIONS}/{id}`]: {
      GET: async ({ parameters: { id = "" }, call }) => receiptAnswer((await execution(id, call)).receipt),
    },
    [`${EXECUTIONS}/{id}/request`]: {
      GET: async ({ parameters: { id = "" }, call }) =>
        ok(encode(ExecutionRequestSchema, requireValue((await execution(id, call)).request))),
    },
    [`${EXECUTIONS}/{id}/receipts`]: {
      GET: async ({ parameters: { id: requestId = "" }, call }) => {
        const { receipts } = await executions.listReceipts({ requestId }, call.asCaller);
        const documents = (settles: boolean) =>
          receipts
            .filter((each) => each.settles === settles)
            .map(({ receipt }) => encode(ExecutionReceiptSchema, requireValue(receipt)));
        const [settled] = documents(true);
        return ok({
          request_id: requestId,
          receipts: documents(false),
          ...(settled !== undefined && { settled_receipt: settled }),
        });
      },
    },
    [`${EXECUTIONS}/{id}/approve`]: {
      POST: async ({ parameters: { id: requestId = "" }, call, readObject }) => {
        await readObject();
        return receiptAnswer((await executions.approveExecution({ requestId }, call.asCaller)).receipt);
      },
    },
    [`${EXECUTIONS}/{id}/cancel`]: {
      POST: async ({ parameters: { id: requestId = "" }, call, readObject }) => {
        const reason = textOf(await readObject(), "reason");
        return receiptAnswer(
          (await executions.cancelExecution({ requestId, reason }, call.asCaller)).receipt,
        );
      },
    },
    [`${EXECUTIONS}/{id}/settlement`]: {
      GET: async ({ parameters: { id: requestId = "" }, call }) => {
        const { settlement } = await executions.getSettlement({ requestId }, call.asCaller);
        return ok(settlementJson(requestId, requireValue(settlement)));
      },
    },

    // Returns the key that signs callbacks, as a JSON Web Key. (RFC 8037)
    "/agenta/callback_key": {
      GET: async ({ call }) => {
        const { publicKey, keyId } = await executions.getCallbackKey({}, call.asCaller);
        return ok({ kty: "OKP", crv: "Ed25519", x: publicKey, kid: keyId, use: "sig", alg: "EdDSA" });
      },
    },

    "/agenta/verification_results": {
      POST: async ({ read, call }) => {
        const result = await read("verification_result", VerificationResultSchema);
        const submitted = await executions.submitVerification({ result }, call.asCaller);
        return ok(encode(VerificationResultSchema, requireValue(submitted.result)), 201);
      },
      GET: async ({ query, call }) => {
        const receiptId = query.get("receipt_id");
        if (receiptId === null) throw invalid("receipt_id", "is required: the id of a receipt");
        const documents: JsonValue[] = [];
        for (let pageToken = ""; ; ) {
          const page = await results.listVerificationResults({ receiptId, pageToken }, call.asCaller);
          documents.push(...page.results.map((result) => encode(VerificationResultSchema, result)));
          pageToken = page.nextPageToken;
          if (pageToken === "") break;
        }
        return ok({ verification_results: documents });
      },
    },
  };
}

function ok(body: JsonValue, status = 200): Answer {
  return { status, body };
}

function receiptAnswer(receipt: ExecutionReceipt | undefined, status = 200): Answer {
  return ok(encode(ExecutionReceiptSchema, requireValue(receipt)), status);
}

/**
 * Returns an answer with an offer. Headers contain the offer's status and digest, because the schema of the document
 * allows no additional members.
 */
function offerAnswer({ offer, status, digest }: PublishedOffer, http: number): Answer {
  const document = requireValue(offer);
  const id = encodeURIComponent(document.offerId);
  const version = encodeURIComponent(document.offerVersion ?? "");
  return {
    status: http,
    body: encode(OfferSchema, document),
    headers: {
      "content-location": `/agenta/offers/${id}/versions/${version}`,
      "depute-offer-status": status === OfferStatus.WITHDRAWN ? "withdrawn" : "published",
      "depute-offer-digest": `sha256:${hexOf(digest)}`,
    },
  };
}

function settlementJson(requestId: string, settlement: Settlement): JsonObject {
  const word = (state: SettlementState) =>
    (SettlementStateSchema.value[state]?.localName ?? "").toLowerCase();
  const { state, currency, limitAmount, finalAmount, paymentCaptureId, verificationExpireTime } = settlement;
  if (word(state) === "unspecified") return { request_id: requestId, state: "none", entries: [] };
  return {
    request_id: requestId,
    state: word(state),
    currency,
    limit_amount: Number(limitAmount),
    ...(finalAmount !== undefined && { final_amount: Number(finalAmount) }),
    payment_authorization_id: settlement.paymentAuthorizationId,
    ...(paymentCaptureId !== "" && { payment_capture_id: paymentCaptureId }),
    verification_required: settlement.verificationRequired,
    ...(verificationExpireTime && {
      verification_deadline_at: formatTime(fromTimestamp(verificationExpireTime)),
    }),
    entries: settlement.entries.map(({ state, amount, reason, time }) => ({
      state: word(state),
      amount: Number(amount),
      reason,
      ...(time && { at: formatTime(fromTimestamp(time)) }),
    })),
  };
}

function partyOf(query: URLSearchParams) {
  const [buyer, seller] = [query.get("buyer_agent_id"), query.get("seller_agent_id")];
  if (buyer !== null && seller === null) return { case: "buyerAgentId", value: buyer } as const;
  if (seller !== null && buyer === null) return { case: "sellerAgentId", value: seller } as const;
  throw invalid(
    "buyer_agent_id",
    "exactly one of buyer_agent_id and seller_agent_id is required: one of the caller's agents",
  );
}

function pageOf(query: URLSearchParams) {
  const text = query.get("limit") ?? "0";
  const pageSize = Number(text);
  if (!/^\d{1,3}$/.test(text) || pageSize > PAGE_LIMIT) {
    throw invalid("limit", `must be a whole number up to ${PAGE_LIMIT}`);
  }
  return { pageSize, pageToken: query.get("cursor") ?? "" };
}

function cursor({ nextPageToken }: { nextPageToken: string }) {
  return nextPageToken === "" ? {} : { next_cursor: nextPageToken };
}

function timeOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const time = parseOffsetTime(text);
  if (time === undefined) throw invalid(name, "must be an RFC 3339 date-time");
  return time;
}

/**
 * Reads the member `name`, a text, from a body for which the protocol defines no document; returns an empty text if
 * the member is absent. Refuses all other members.
 */
function textOf(body: JsonObject, name: string): string {
  for (const other of Object.keys(body))
    if (other !== name) throw invalid(`/${other}`, "is not a known member: remove it");
  const value = body[name];
  if (value === undefined) return "";
  if (typeof value !== "string") throw invalid(`/${name}`, "must be a text");
  return value;
}

function requireValue<T>(value: T | undefined): T {
  if (value !== undefined) return value;
  throw new DeputeError(ErrorReason.INTERNAL, "a service answered without its message");
}
