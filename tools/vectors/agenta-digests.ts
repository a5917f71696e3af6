import { createHash } from "node:crypto";
import { create, type JsonObject, toJson } from "@bufbuild/protobuf";
import { OfferSchema } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import { canonicalJson } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { thumbprint } from "@depute/dct";
import { offerDigest } from "@depute/registry/offer-digest";
import { signatureBase, signatureParams } from "@depute/tasks/executions/message-signature";
import { engine, hex, keypairOf, NOW, seedOf, utf8, type VectorCase, type VectorFile } from "./shared.ts";

const OFFERS = {
  "an offer": {
    protocolVersion: "agenta.delegation.v0",
    messageType: "offer",
    offerId: "offer-0001",
    offerVersion: "3",
    title: "Translation",
    description: "Translates texts.",
    capabilities: { values: ["translate"] },
  },
  "an offer without a version": {
    protocolVersion: "agenta.delegation.v0",
    messageType: "offer",
    offerId: "offer-0001",
    title: "Translation \u20ac",
    description: "",
    capabilities: { values: [] },
  },
};

const REQUESTS = {
  "a receipt": { url: "https://buyer.example/receipts", body: '{"receipt_id":"r-1"}' },
  "an empty body": { url: "https://buyer.example:8443/receipts?of=1", body: "" },
};

export function agentaDigestVectors(): VectorFile {
  return { specification: "agenta-digests.md", cases: [...offers(), ...callbacks()] };
}

function offers(): VectorCase[] {
  return Object.entries(OFFERS).map(([name, members]) => {
    const offer = create(OfferSchema, members);
    const json = toJson(OfferSchema, offer) as JsonObject;
    const { offerVersion: _, ...content } = json;
    return {
      name: `offer digest: ${name}`,
      operation: "offer-digest",
      input: { offer: json },
      expected: { canonical: canonicalJson(content), digestHex: offerDigest(offer, sha256Hex) },
    };
  });
}

function callbacks(): VectorCase[] {
  const { principal, privateKey } = keypairOf("alice");
  const keyId = thumbprint(engine, principal.id);
  return Object.entries(REQUESTS).map(([name, { url, body }]) => {
    const digest = createHash("sha256").update(body).digest("base64");
    const contentType = "application/json";
    const contentDigest = `sha-256=:${digest}:`;
    const created = NOW / 1000;
    const params = signatureParams({ created, keyId });
    const base = signatureBase({ method: "POST", url, contentType, contentDigest }, params);
    const signature = Buffer.from(engine.sign(utf8(base), privateKey)).toString("base64");
    return {
      name: `callback: ${name}`,
      operation: "callback",
      input: { seedHex: hex(seedOf("alice")), url, contentType, body, created },
      expected: {
        contentDigest,
        signatureInput: `depute=${params}`,
        base,
        signature: `depute=:${signature}:`,
      },
    };
  });
}
