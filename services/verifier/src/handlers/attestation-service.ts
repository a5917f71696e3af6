import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { Attestation as AttestationMessage } from "@depute/contracts/delegateos/v0/attestation_pb";
import {
  type AttestationService,
  type GetAttestationRequest,
  type ListAttestationsRequest,
  type PrepareAttestationRequest,
  type RecordAttestationRequest,
  RecordAttestationRequestSchema,
} from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { decodePageToken, encodePageToken, formatTime, invalid, pageSize, toTimestamp } from "@depute/core";
import { newId, objectSigningInput } from "@depute/dct";
import { assertValid } from "@depute/service";
import { readAttestation, saveAttestation } from "../attestations.ts";
import { createBreath } from "../breath.ts";
import { toDocument, toMessage, toStored } from "../documents.ts";
import { validateAttestation } from "../rules/attestation-validation.ts";
import { listAttestations } from "../store/attestations.ts";
import type { Verifier } from "../verifier.ts";
import { attestOutput } from "./attest-output.ts";
import { completeDelegation } from "./complete-delegation.ts";
import { exportAttestation } from "./export-attestation.ts";
import { verifyAttestation } from "./verify-attestation.ts";
import { verifyAttestationTree } from "./verify-attestation-tree.ts";

const NO_SIGNATURE = "A".repeat(86);

/** AttestationService (DelegateOS 7). */
export function attestationService(verifier: Verifier): ServiceImpl<typeof AttestationService> {
  const { store, engine, clock, authority } = verifier;
  return {
    async getVerifier(_request, context: HandlerContext) {
      await authority.identify(context);
      return { principal: verifier.keypair.principal.id };
    },

    async prepareAttestation(request: PrepareAttestationRequest, context: HandlerContext) {
      await authority.identify(context);
      const message = complete(request.attestation, clock.now());
      const attestation = toDocument("attestation", message);
      const breathe = createBreath();
      validateAttestation(attestation, clock.now(), engine);
      await breathe();
      return { attestation: { ...message, signature: "" }, digest: objectSigningInput(engine, attestation) };
    },

    // The signature says whose statement it is, so anybody may hand it in.
    async recordAttestation({ attestation: message }: RecordAttestationRequest, context: HandlerContext) {
      await authority.identify(context);
      if (message === undefined) throw invalid("attestation", "is needed");
      const breathe = createBreath();
      const attestation = toDocument("attestation", message);
      await breathe();
      validateAttestation(attestation, clock.now(), engine);
      await breathe();
      const wanted = await toStored(engine, "attestation", attestation, clock.now(), breathe);
      await verifier.contracts.get(attestation.contractId);
      await breathe();
      const stored = await store.write((tx) => saveAttestation(tx, verifier.log, wanted, attestation));
      await breathe();
      const isTheSame = stored.document === wanted.document;
      return {
        attestation: isTheSame ? message : toMessage("attestation", JSON.parse(stored.document)),
        recordTime: toTimestamp(stored.storeTime),
      };
    },

    completeDelegation: (request, context) => completeDelegation(verifier, request, context),
    attestOutput: (request, context) => attestOutput(verifier, request, context),

    async getAttestation({ id }: GetAttestationRequest, context: HandlerContext) {
      await authority.identify(context);
      const { attestation, storeTime } = await readAttestation(store, id);
      return { attestation: toMessage("attestation", attestation), recordTime: toTimestamp(storeTime) };
    },

    async listAttestations(request: ListAttestationsRequest, context: HandlerContext) {
      await authority.identify(context);
      const filters = { list: "attestations", contract: request.contractId };
      const after = decodePageToken(request.pageToken, filters);
      const page = await store.read((tx) =>
        listAttestations(tx, request.contractId, pageSize(request.pageSize), after),
      );
      return {
        attestations: page.documents.map(({ document }) => toMessage("attestation", JSON.parse(document))),
        nextPageToken: page.next === undefined ? "" : encodePageToken(page.next, filters),
      };
    },

    verifyAttestation: (request, context) => verifyAttestation(verifier, request, context),
    verifyAttestationTree: (request, context) => verifyAttestationTree(verifier, request, context),
    exportAttestation: (request, context) => exportAttestation(verifier, request, context),
  };
}

/** The attestation with what its attester left to us. @throws DeputeError INVALID_REQUEST */
function complete(message: AttestationMessage | undefined, now: number): AttestationMessage {
  if (message === undefined) throw invalid("attestation", "is needed");
  const attestation = {
    ...message,
    id: message.id || newId("att"),
    version: message.version || "0.1",
    createdAt: message.createdAt || formatTime(now),
    signature: NO_SIGNATURE,
  };
  assertValid(RecordAttestationRequestSchema, create(RecordAttestationRequestSchema, { attestation }));
  return attestation;
}
