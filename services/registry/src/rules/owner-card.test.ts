import { canonicalBytes } from "@depute/core";
import { describe, expect, it } from "vitest";
import { verifyEd25519 } from "../ed25519.ts";
import { signedCard } from "../testing/owner-card.ts";
import { signer } from "../testing/statement.ts";
import { readOwnerCard } from "./owner-card.ts";

const OWNER = signer();
const OTHER = signer();
const { principal } = OWNER;
const CARD = {
  name: "Analyst",
  url: "https://acme.com/a2a",
  version: "1",
  additionalInterfaces: [{ url: "https://acme.com/grpc", transport: "GRPC" }, "odd"],
  delegateos: { principal },
};

const utf8 = new TextEncoder();
const read = (text: string, key = principal) =>
  readOwnerCard({ signedCard: utf8.encode(text), principal: key }, verifyEd25519);
const refusal = (text: string, key?: string) => {
  try {
    read(text, key);
  } catch (error) {
    return error as { reason: unknown; message: string };
  }
  throw new Error("was taken");
};

describe("a card with its owner's signature", () => {
  it("is stored in canonical form for any order of members", () => {
    const text = signedCard(OWNER, CARD);
    const pretty = JSON.stringify(JSON.parse(text), undefined, 2);
    const card = read(pretty);
    expect(card?.text).toEqual(canonicalBytes(JSON.parse(text)));
    expect(card?.payload).toEqual(canonicalBytes(CARD));
    expect(card?.endpoints.map(({ url }) => url)).toEqual(["https://acme.com/a2a", "https://acme.com/grpc"]);
  });

  it("may have further signatures", () => {
    const [ownSignature, another] = [OWNER, OTHER].map(
      (each) => JSON.parse(signedCard(each, CARD)).signatures[0],
    );
    expect(read(JSON.stringify({ ...CARD, signatures: [another, ownSignature] }))).toBeDefined();
    expect(refusal(JSON.stringify({ ...CARD, signatures: [another] })).message).toContain("is not signed");
  });

  it("is undefined without a card", () => {
    expect(readOwnerCard({ signedCard: new Uint8Array(), principal: "" }, verifyEd25519)).toBeUndefined();
  });
});

describe("refuses", () => {
  const signed = (parts: Record<string, unknown>, header?: Record<string, unknown>) =>
    signedCard(OWNER, { ...CARD, ...parts }, header);
  const forged = (change: (card: Record<string, unknown>) => void) => {
    const card = JSON.parse(signed({}));
    change(card);
    return JSON.stringify(card);
  };

  it.each<[string, string, string]>([
    ["malformed JSON", "{", "is not JSON"],
    ["a value that is not an object", "[]", "is not a JSON object"],
    ["half a surrogate pair", '{"name":"\\ud800"}', "no canonical form"],
    ["a member of every object", '{"__proto__":{}}', "__proto__"],
    ["a card without a name", signed({ name: "" }), "has no name"],
    ["a card without an address", signed({ url: 5 }), "has no url"],
    ["a card without a version", signed({ version: undefined }), "has no version"],
    ["a card without a DelegateOS member", signed({ delegateos: undefined }), "delegateos"],
    ["another agent's card", signed({ delegateos: { principal: OTHER.principal } }), "delegateos"],
    ["a card that is not signed", JSON.stringify(CARD), "has no signatures"],
    ["malformed signatures", JSON.stringify({ ...CARD, signatures: {} }), "has no signatures"],
    ["too many signatures", JSON.stringify({ ...CARD, signatures: Array(9).fill({}) }), "more than 8"],
    ["odd signatures", JSON.stringify({ ...CARD, signatures: [1, {}, { protected: 1 }] }), "is not signed"],
    [
      "a changed card",
      forged((card) => Object.assign(card, { url: "https://evil.example" })),
      "is not signed",
    ],
    ["an added member", forged((card) => Object.assign(card, { more: true })), "is not signed"],
    ["another algorithm", signed({}, { alg: "none" }), "is not signed"],
    ["an unknown extension", signed({}, { b64: false, crit: ["b64"] }), "is not signed"],
    ["a card that another key has signed", signedCard(OTHER, CARD), "is not signed"],
  ])("%s", (_, text, why) => {
    expect(refusal(text).message).toContain(why);
  });

  it("a card of an agent without a key", () => {
    expect(refusal(signed({}), "").message).toContain("requires an agent with a principal");
  });
});
