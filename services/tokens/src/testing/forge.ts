import { canonicalBytes, encodeBase64Url } from "@depute/core";
import {
  type Attenuation,
  attenuationSigningInput,
  type Keypair,
  newId,
  parseToken,
  type SerializedDCT,
} from "@depute/dct";
import { engine, id } from "./holders.ts";

/**
 * Forges a token: appends a block that no rule has checked, signed with the key `from`. A malicious holder can do this.
 */
export function forgeLink(text: string, from: Keypair, to: Keypair, limits: object): SerializedDCT {
  const parsed = parseToken(text);
  if (!parsed.ok) throw new Error(parsed.denial.type);
  const { token } = parsed;
  const block: Attenuation = {
    attenuator: id(from),
    delegatee: id(to),
    delegationId: newId("del"),
    contractId: token.authority.contractId,
    ...limits,
  };
  const signature = encodeBase64Url(
    engine.sign(attenuationSigningInput(engine, token, block), from.privateKey),
  );
  const signed = { signer: id(from), signature, covers: token.attenuations.length };
  const forged = {
    ...token,
    attenuations: [...token.attenuations, block],
    signatures: [...token.signatures, signed],
  };
  return { token: encodeBase64Url(canonicalBytes(forged)), format: token.format };
}
