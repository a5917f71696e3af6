import type { Manifest } from "./pages.ts";

const FAMILY = "agenta.delegation.v0";

/** Returns the addresses of the protocol's documents on this platform. */
function documentsOf(url: string, manifest: Manifest) {
  const publicAddress = (address: string) => `${url}${new URL(address).pathname}`;
  return {
    documents: {
      html: publicAddress(manifest.documents.html),
      json: publicAddress(manifest.documents.json),
      markdown: publicAddress(manifest.documents.markdown),
    },
    schemas: manifest.schemas.map(publicAddress),
  };
}

/**
 * Returns the addresses of the protocol's calls on this platform. Depute chose them, because the protocol defines no
 * transport.
 */
function endpoints(url: string) {
  const requests = `${url}/agenta/execution_requests`;
  return {
    offers: `${url}/agenta/offers`,
    offer: `${url}/agenta/offers/{offer_id}`,
    offer_version: `${url}/agenta/offers/{offer_id}/versions/{offer_version}`,
    withdraw_offer: `${url}/agenta/offers/{offer_id}/withdraw`,
    execution_requests: requests,
    execution: `${requests}/{request_id}`,
    request: `${requests}/{request_id}/request`,
    receipts: `${requests}/{request_id}/receipts`,
    settlement: `${requests}/{request_id}/settlement`,
    approve: `${requests}/{request_id}/approve`,
    cancel: `${requests}/{request_id}/cancel`,
    verification_results: `${url}/agenta/verification_results`,
    callback_key: `${url}/agenta/callback_key`,
  };
}

/** Returns `/.well-known/agent.json`: a description of the platform with the addresses of all documents. */
export function agentCard(url: string, manifest: Manifest) {
  return {
    name: "Depute",
    description: "Delegation infrastructure: offers, executions, receipts and verification between agents.",
    url,
    protocols: [{ protocol_id: manifest.protocol_id, status: manifest.status }],
    message_types: manifest.message_types,
    index: `${url}/index.json`,
    specs: `${url}/specs/index.json`,
    pricing: `${url}/pricing/index.json`,
    verification: `${url}/verification/index.json`,
    endpoints: endpoints(url),
    authentication: ["DPoP", "Bearer"],
    grpc: {
      offers: "depute.registry.v1.OfferService",
      executions: "depute.tasks.v1.ExecutionService",
      verification_results: "depute.verifier.v1.ResultService",
    },
  };
}

/** Returns `/index.json`: the list of published documents. */
export function siteIndex(url: string, manifest: Manifest) {
  return {
    site: url,
    agent: `${url}/.well-known/agent.json`,
    specs: `${url}/specs/index.json`,
    pricing: `${url}/pricing/index.json`,
    verification: `${url}/verification/index.json`,
    protocols: [{ protocol_id: manifest.protocol_id, ...documentsOf(url, manifest) }],
    endpoints: endpoints(url),
  };
}

/** Returns `/specs/index.json`: the manifest's protocol with its documents. */
export function specsIndex(url: string, manifest: Manifest) {
  const { protocol_id, status, purpose, message_types } = manifest;
  return {
    specs: [{ protocol_id, status, purpose, message_types, ...documentsOf(url, manifest) }],
  };
}

/** Returns `/pricing/index.json`: the pricing models. The prices themselves are in the offers. */
export function pricingIndex(url: string) {
  return {
    protocol_id: FAMILY,
    amounts: "whole minor units of the ISO 4217 currency; the request's currency has to be the offer's",
    limit:
      "the lesser of payment.max_amount and execution_constraints.max_budget; nothing is charged beyond it",
    pricing_models: {
      fixed: "the offer's amount",
      usage_based:
        "the offer's amount times the receipt's usage in the offer's unit, rounded up; the unit is one of input_units, output_units, compute_seconds",
      quote_required:
        "the amount that the parties agreed on beforehand: the request's metadata names it as quote_id, and is refused without",
    },
    settlement: {
      escrow: "with payment.escrow_required the limit is held from the acceptance on",
      capture: "on completion, or after a verification that passed where one is required",
      otherwise: "the held amount is refunded, and the authorization is not used",
      moves_money: false,
    },
    offers: `${url}/agenta/offers`,
  };
}

/** Returns `/verification/index.json`: the verifiers, and the conditions under which a verification passes. */
export function verificationIndex(url: string, manifest: Manifest) {
  return {
    protocol_id: FAMILY,
    modes: {
      seller_attested: "the seller; the platform records it once it has checked the delivery itself",
      buyer_verified: "the buyer",
      third_party_verified:
        "an agent whose owner is neither party: one that the request's metadata names in acceptable_verifiers, else one whose organization an operator has proven",
    },
    required:
      "where the request says require_verification, and else where the offer's mode is not seller_attested",
    pass: "every required artifact, no digest that differs, no check that failed, and the minimum score",
    digests:
      "sha256:<64 hexadecimal digits>, compared for data: URIs and for urn:depute:artifact: ones; nothing is fetched",
    decisions: { pass: "final", fail: "final", inconclusive: "another result may follow" },
    failure_modes: manifest.failure_modes,
    verification_results: `${url}/agenta/verification_results`,
    transparency_log: `${url}/log/head`,
  };
}
