import { createHash } from "node:crypto";
import { fromJson, toJson } from "@bufbuild/protobuf";
import { OfferSchema } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import { canonicalJson } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { portableEngine as engine, keypairFromSeed, thumbprint } from "@depute/dct";
import { offerDigest } from "@depute/registry/offer-digest";
import { signatureBase, signatureParams } from "@depute/tasks/executions/message-signature";
import { hexBytes, type Operations } from "./answer.ts";

export const agentaDigestOperations: Operations = {
  "offer-digest"({ offer: json }) {
    const offer = fromJson(OfferSchema, json);
    const digestHex = offerDigest(offer, sha256Hex);
    delete offer.offerVersion;
    return { expected: { canonical: canonicalJson(toJson(OfferSchema, offer)), digestHex } };
  },

  callback({ seedHex, url, contentType, body, created }) {
    const { principal, privateKey } = keypairFromSeed(engine, hexBytes(seedHex));
    const params = signatureParams({ created, keyId: thumbprint(engine, principal.id) });
    const contentDigest = `sha-256=:${createHash("sha256").update(body).digest("base64")}:`;
    const base = signatureBase({ method: "POST", url, contentType, contentDigest }, params);
    const signature = Buffer.from(engine.sign(Buffer.from(base), privateKey)).toString("base64");
    const signatureInput = `depute=${params}`;
    return { expected: { contentDigest, signatureInput, base, signature: `depute=:${signature}:` } };
  },
};
