import { create, toBinary } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { TaskContract as TaskContractMessage } from "@depute/contracts/delegateos/v0/contract_pb";
import {
  type ContractService,
  type CreateContractRequest,
  CreateContractRequestSchema,
  type GetContractRequest,
  type ListContractsRequest,
  type PrepareContractRequest,
  type SignContractRequest,
  SignContractRequestSchema,
} from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import {
  DeputeError,
  decodePageToken,
  ErrorReason,
  encodeBase64Url,
  encodePageToken,
  formatTime,
  invalid,
  owningOrganization,
  pageSize,
  toTimestamp,
} from "@depute/core";
import { newId, objectSigningInput, signObject } from "@depute/dct";
import { assertValid, mayActFor } from "@depute/service";
import type { RequestKey } from "@depute/store";
import type { CheckCaller } from "../checker/checker.ts";
import type { KnownContract } from "../contract-book.ts";
import { toDocument, toMessage, toStored } from "../documents.ts";
import { checkCallerOf } from "../output-verification.ts";
import { validateContract } from "../rules/contract-validation.ts";
import type { TaskContract } from "../rules/documents.ts";
import { getContract, insertContract, listContracts } from "../store/contracts.ts";
import type { SignedDocument, StoredDocument } from "../store/documents.ts";
import { findRequest, insertRequest } from "../store/requests.ts";
import type { Verifier } from "../verifier.ts";
import { createYieldToEventLoop } from "../yield-to-event-loop.ts";
import { decomposeContract, getContractLineage, listSubContractsOf } from "./decompose-contract.ts";
import { purgeOrganization } from "./purge-organization.ts";
import { verifyContract } from "./verify-contract.ts";

/** A well-formed placeholder for the signature, so that validation reports only the faults of other fields. */
const NO_SIGNATURE = "A".repeat(86);

/** Handles the calls of ContractService (DelegateOS 5). */
export function contractService(verifier: Verifier): ServiceImpl<typeof ContractService> {
  const { store, engine, clock, authority } = verifier;

  /**
   * Requires that the contract is valid, and that its schemas and patterns compile.
   *
   * @throws the errors of validateContract and Checker.compile
   */
  async function assertUsable(contract: TaskContract, by: CheckCaller): Promise<void> {
    await verifier.checker.compile(validateContract(contract, clock.now(), verifier.names), by);
  }

  return {
    async prepareContract(request: PrepareContractRequest, context: HandlerContext) {
      const identity = await authority.identify(context);
      const message = withDefaults(request.contract, clock.now());
      const contract = toDocument("contract", message);
      await assertUsable(contract, checkCallerOf({ identity, signal: context.signal }));
      return { contract: { ...message, signature: "" }, digest: objectSigningInput(engine, contract) };
    },

    async createContract({ contract: message }: CreateContractRequest, context: HandlerContext) {
      const identity = await authority.identify(context);
      if (message === undefined) throw invalid("contract", "is required");
      const contract = toDocument("contract", message);
      const stored = await toStored(
        engine,
        "contract",
        contract,
        clock.now(),
        createYieldToEventLoop(verifier),
      );
      const existingContract = await store.read((tx) => getContract(tx, contract.id));
      if (existingContract !== undefined) return answer(theSame(existingContract, stored));
      await assertUsable(contract, checkCallerOf({ identity, signal: context.signal }));
      return answer(
        await store.write(async (tx) => {
          const meanwhile = await getContract(tx, stored.id);
          if (meanwhile !== undefined) return theSame(meanwhile, stored);
          const owned = { ...stored, organization: owningOrganization(identity, undefined) };
          await insertContract(tx, owned, contract.issuer);
          return owned;
        }),
      );
    },

    async signContract(request: SignContractRequest, context: HandlerContext) {
      const identity = await authority.identify(context);
      if (!identity.local) {
        throw new DeputeError(
          ErrorReason.CALLER_NOT_ALLOWED,
          "a caller with credentials must sign its own contracts; use PrepareContract",
        );
      }
      const { keypair } = verifier;
      const key: RequestKey = {
        caller: identity.principal,
        requestId: `contract ${request.requestId}`,
        digest: encodeBase64Url(engine.blake2b256(toBinary(SignContractRequestSchema, request))),
      };
      const before = await store.read((tx) => findRequest(tx, key));
      if (before !== undefined) {
        return answerOf(await verifier.contracts.get(before));
      }
      const issuer = keypair.principal.id;
      const message = withDefaults(request.contract && { ...request.contract, issuer }, clock.now());
      const { signature: _, ...body } = toDocument("contract", message);
      const contract = signObject(engine, "contract", body, keypair);
      const stored = await toStored(
        engine,
        "contract",
        contract,
        clock.now(),
        createYieldToEventLoop(verifier),
      );
      await assertUsable(contract, checkCallerOf({ identity, signal: context.signal }));
      return answer(
        await store.write(async (tx) => {
          const meanwhile = await findRequest(tx, key);
          const existing = await getContract(tx, meanwhile ?? stored.id);
          if (existing !== undefined) return meanwhile === undefined ? theSame(existing, stored) : existing;
          const owned = { ...stored, organization: owningOrganization(identity, undefined) };
          await insertContract(tx, owned, issuer);
          await insertRequest(tx, key, stored.id, stored.storeTime);
          return owned;
        }),
      );
    },

    // Any caller with the id may read the contract, because delegatees and verifiers need it. An id has 48 random bits,
    // too many to guess.
    async getContract({ contractId: id }: GetContractRequest, context: HandlerContext) {
      await authority.identify(context);
      return answerOf(await verifier.contracts.get(id));
    },

    async listContracts(request: ListContractsRequest, context: HandlerContext) {
      const identity = await authority.identify(context);
      const issuer = request.issuer || (identity.local ? undefined : identity.principal);
      const filters = { list: "contracts", issuer };
      const after = decodePageToken(request.pageToken, filters);
      // If the caller may not act for the issuer, the list is empty.
      if (issuer !== undefined && !mayActFor(identity, issuer)) return { contracts: [], nextPageToken: "" };
      const page = await store.read((tx) => listContracts(tx, issuer, pageSize(request.pageSize), after));
      return {
        contracts: page.documents.map(({ document }) => toMessage("contract", JSON.parse(document))),
        nextPageToken: page.next === undefined ? "" : encodePageToken(page.next, filters),
      };
    },

    purgeOrganization: (request, context) => purgeOrganization(verifier, request, context),
    verifyContract: (request, context) => verifyContract(verifier, request, context),
    decomposeContract: (request, context) => decomposeContract(verifier, request, context),
    getContractLineage: (request, context) => getContractLineage(verifier, request, context),
    listSubContracts: (request, context) => listSubContractsOf(verifier, request, context),
  };
}

/**
 * Fills in the fields that the issuer may omit: id, version and creation time.
 *
 * @throws DeputeError INVALID_REQUEST
 */
function withDefaults(message: TaskContractMessage | undefined, now: number): TaskContractMessage {
  if (message === undefined) throw invalid("contract", "is required");
  const contract = {
    ...message,
    id: message.id || newId("ct"),
    version: message.version || "0.1",
    createdAt: message.createdAt || formatTime(now),
    signature: NO_SIGNATURE,
  };
  assertValid(CreateContractRequestSchema, create(CreateContractRequestSchema, { contract }));
  return contract;
}

function theSame(storedDocument: StoredDocument, signed: SignedDocument): StoredDocument {
  if (storedDocument.digest === signed.digest) return storedDocument;
  throw new DeputeError(ErrorReason.CONTRACT_EXISTS, "another contract has this id; use a new id", {
    metadata: { contract: signed.id },
  });
}

function answer({ document, storeTime, organization }: StoredDocument) {
  return answerOf({ contract: JSON.parse(document), storeTime, organization });
}

function answerOf({ contract, storeTime, organization }: Omit<KnownContract, "outputRule">) {
  return { contract: toMessage("contract", contract), createTime: toTimestamp(storeTime), organization };
}
