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
  pageSize,
  toTimestamp,
} from "@depute/core";
import { newId, objectSigningInput, signObject } from "@depute/dct";
import { assertValid, mayActFor } from "@depute/service";
import type { By } from "../checker/checker.ts";
import { toDocument, toMessage, toStored } from "../documents.ts";
import { byOf } from "../judging.ts";
import { validateContract } from "../rules/contract-validation.ts";
import type { TaskContract } from "../rules/documents.ts";
import { getContract, insertContract, listContracts } from "../store/contracts.ts";
import type { StoredDocument } from "../store/documents.ts";
import { answeredBefore, type RequestKey, rememberAnswer } from "../store/requests.ts";
import type { Verifier } from "../verifier.ts";
import { decomposeContract, getContractLineage, listSubContractsOf } from "./decompose-contract.ts";
import { verifyContract } from "./verify-contract.ts";

/** Stands for a signature that does not exist yet, where the rest is held to the rules of the message. */
const NO_SIGNATURE = "A".repeat(86);

/** ContractService (DelegateOS 5). */
export function contractService(verifier: Verifier): ServiceImpl<typeof ContractService> {
  const { store, engine, clock, authority } = verifier;

  /** @throws DeputeError for a contract that could not be carried out */
  async function assertUsable(contract: TaskContract, by: By): Promise<void> {
    await verifier.checker.compile(validateContract(contract, clock.now(), verifier.names), by);
  }

  return {
    async prepareContract(request: PrepareContractRequest, context: HandlerContext) {
      const identity = await authority.identify(context);
      const message = complete(request.contract, clock.now());
      const contract = toDocument("contract", message);
      await assertUsable(contract, byOf({ identity, signal: context.signal }));
      return { contract: { ...message, signature: "" }, digest: objectSigningInput(engine, contract) };
    },

    async createContract({ contract: message }: CreateContractRequest, context: HandlerContext) {
      const identity = await authority.identify(context);
      if (message === undefined) throw invalid("contract", "is needed");
      const contract = toDocument("contract", message);
      const stored = await toStored(engine, "contract", contract, clock.now());
      const known = await store.read((tx) => getContract(tx, contract.id));
      if (known !== undefined) return answer(theSame(known, stored));
      await assertUsable(contract, byOf({ identity, signal: context.signal }));
      return answer(
        await store.write(async (tx) => {
          const meanwhile = await getContract(tx, stored.id);
          if (meanwhile !== undefined) return theSame(meanwhile, stored);
          await insertContract(tx, stored, contract.issuer);
          return stored;
        }),
      );
    },

    async signContract(request: SignContractRequest, context: HandlerContext) {
      const identity = await authority.identify(context);
      if (!identity.local) {
        throw new DeputeError(
          ErrorReason.CALLER_NOT_ALLOWED,
          "callers with credentials sign their own contracts",
        );
      }
      const { keypair } = verifier;
      const key: RequestKey = {
        caller: identity.principal,
        requestId: `contract ${request.requestId}`,
        digest: encodeBase64Url(engine.blake2b256(toBinary(SignContractRequestSchema, request))),
      };
      const before = await store.read((tx) => answeredBefore(tx, key));
      if (before !== undefined) {
        const { contract, storeTime } = await verifier.contracts.get(before);
        return { contract: toMessage("contract", contract), createTime: toTimestamp(storeTime) };
      }
      const issuer = keypair.principal.id;
      const message = complete(request.contract && { ...request.contract, issuer }, clock.now());
      const { signature: _, ...body } = toDocument("contract", message);
      const contract = signObject(engine, "contract", body, keypair);
      const stored = await toStored(engine, "contract", contract, clock.now());
      await assertUsable(contract, byOf({ identity, signal: context.signal }));
      return answer(
        await store.write(async (tx) => {
          const meanwhile = await answeredBefore(tx, key);
          const known = await getContract(tx, meanwhile ?? stored.id);
          if (known !== undefined) return meanwhile === undefined ? theSame(known, stored) : known;
          await insertContract(tx, stored, issuer);
          await rememberAnswer(tx, key, stored.id, stored.storeTime);
          return stored;
        }),
      );
    },

    // Whoever was told a contract's id may read it: the delegatee and whoever checks its work have to. An id is 48
    // random bits, too many to try.
    async getContract({ id }: GetContractRequest, context: HandlerContext) {
      await authority.identify(context);
      const { contract, storeTime } = await verifier.contracts.get(id);
      return { contract: toMessage("contract", contract), createTime: toTimestamp(storeTime) };
    },

    async listContracts(request: ListContractsRequest, context: HandlerContext) {
      const identity = await authority.identify(context);
      const issuer = request.issuer || (identity.local ? undefined : identity.principal);
      const filters = { list: "contracts", issuer };
      const after = decodePageToken(request.pageToken, filters);
      // Another's contracts look like none at all.
      if (issuer !== undefined && !mayActFor(identity, issuer)) return { contracts: [], nextPageToken: "" };
      const page = await store.read((tx) => listContracts(tx, issuer, pageSize(request.pageSize), after));
      return {
        contracts: page.documents.map(({ document }) => toMessage("contract", JSON.parse(document))),
        nextPageToken: page.next === undefined ? "" : encodePageToken(page.next, filters),
      };
    },

    verifyContract: (request, context) => verifyContract(verifier, request, context),
    decomposeContract: (request, context) => decomposeContract(verifier, request, context),
    getContractLineage: (request, context) => getContractLineage(verifier, request, context),
    listSubContracts: (request, context) => listSubContractsOf(verifier, request, context),
  };
}

/** The contract with what its issuer left to us. @throws DeputeError INVALID_REQUEST */
function complete(message: TaskContractMessage | undefined, now: number): TaskContractMessage {
  if (message === undefined) throw invalid("contract", "is needed");
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

function theSame(known: StoredDocument, wanted: StoredDocument): StoredDocument {
  if (known.digest === wanted.digest) return known;
  throw new DeputeError(ErrorReason.CONTRACT_EXISTS, "the id is another contract's", {
    metadata: { contract: wanted.id },
  });
}

function answer({ document, storeTime }: StoredDocument) {
  return { contract: toMessage("contract", JSON.parse(document)), createTime: toTimestamp(storeTime) };
}
