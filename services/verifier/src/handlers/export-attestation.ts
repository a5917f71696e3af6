import type { HandlerContext } from "@connectrpc/connect";
import type { ExportAttestationRequest } from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { readAttestation } from "../attestations.ts";
import {
  type DsseEnvelope,
  dsseJson,
  IN_TOTO_PAYLOAD_TYPE,
  inTotoStatement,
  preAuthEncoding,
} from "../rules/in-toto.ts";
import type { Verifier } from "../verifier.ts";

/**
 * Exports an attestation for tools that read in-toto and DSSE. The export has the verifier's signature, which states
 * that the verifier service stores this attestation.
 */
export async function exportAttestation(
  { store, engine, keypair, contracts, authority }: Verifier,
  { attestationId: id }: ExportAttestationRequest,
  context: HandlerContext,
) {
  await authority.identify(context);
  const { attestation } = await readAttestation(store, id);
  const { contract } = await contracts.get(attestation.contractId);
  const payload = inTotoStatement(engine, attestation, contract);
  const sig = engine.sign(preAuthEncoding(IN_TOTO_PAYLOAD_TYPE, payload), keypair.privateKey);
  const envelope: DsseEnvelope = {
    payloadType: IN_TOTO_PAYLOAD_TYPE,
    payload,
    signatures: [{ keyid: keypair.principal.id, sig }],
  };
  return { envelope, json: dsseJson(envelope) };
}
