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
import { readAttestation, storeAttestation } from "../attestations.ts";
import { toDocument, toMessage, toStored } from "../documents.ts";
import { validateAttestation } from "../rules/attestation-validation.ts";
import { listAttestations } from "../store/attestations.ts";
import type { Verifier } from "../verifier.ts";
import { createYieldToEventLoop } from "../yield-to-event-loop.ts";
import { attestOutput } from "./attest-output.ts";
import { completeDelegation } from "./complete-delegation.ts";
import { exportAttestation } from "./export-attestation.ts";
import { verifyAttestation } from "./verify-attestation.ts";
import { verifyAttestationTree } from "./verify-attestation-tree.ts";

const NO_SIGNATURE = "A".repeat(86);

/** Handles the calls of AttestationService (DelegateOS 7). */
export function attestationService(verifier: Verifier): ServiceImpl<typeof AttestationService> {
  const { store, engine, clock, authority } = verifier;
  return {
    async getVerifier(_request, context: HandlerContext) {
      await authority.identify(context);
      return { principal: verifier.keypair.principal.id };
    },

    async prepareAttestation(request: PrepareAttestationRequest, context: HandlerContext) {
      await authority.identify(context);
      const message = withDefaults(request.attestation, clock.now());
      const attestation = toDocument("attestation", message);
      const yieldToEventLoop = createYieldToEventLoop(verifier);
      validateAttestation(attestation, clock.now(), engine);
      await yieldToEventLoop();
      return { attestation: { ...message, signature: "" }, digest: objectSigningInput(engine, attestation) };
    },

    // Any caller may record an attestation, because the attestation's signature proves its signer.
    async recordAttestation({ attestation: message }: RecordAttestationRequest, context: HandlerContext) {
      await authority.identify(context);
      if (message === undefined) throw invalid("attestation", "is needed");
      const yieldToEventLoop = createYieldToEventLoop(verifier);
      const attestation = toDocument("attestation", message);
      await yieldToEventLoop();
      validateAttestation(attestation, clock.now(), engine);
      await yieldToEventLoop();
      const signed = await toStored(engine, "attestation", attestation, clock.now(), yieldToEventLoop);
      await verifier.contracts.get(attestation.contractId);
      await yieldToEventLoop();
      const stored = await store.write((tx) => storeAttestation(tx, verifier.log, signed, attestation));
      await yieldToEventLoop();
      const isTheSame = stored.document === signed.document;
      return {
        attestation: isTheSame ? message : toMessage("attestation", JSON.parse(stored.document)),
        recordTime: toTimestamp(stored.storeTime),
        organization: stored.organization,
      };
    },

    completeDelegation: (request, context) => completeDelegation(verifier, request, context),
    attestOutput: (request, context) => attestOutput(verifier, request, context),

    async getAttestation({ attestationId: id }: GetAttestationRequest, context: HandlerContext) {
      await authority.identify(context);
      const { attestation, storeTime, organization } = await readAttestation(store, id);
      const recordTime = toTimestamp(storeTime);
      return { attestation: toMessage("attestation", attestation), recordTime, organization };
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

/**
 * Fills in the fields that the attester may omit: id, version and creation time.
 *
 * @throws DeputeError INVALID_REQUEST
 */
function withDefaults(message: AttestationMessage | undefined, now: number): AttestationMessage {
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
