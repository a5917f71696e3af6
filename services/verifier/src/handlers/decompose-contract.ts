import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type DecomposeContractRequest,
  DecompositionMode,
  type GetContractLineageRequest,
  type ListSubContractsRequest,
  type SubContract,
  SubContractSchema,
} from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import {
  canonicalBytes,
  DeputeError,
  decodePageToken,
  ErrorReason,
  encodeHex,
  encodePageToken,
  invalid,
  pageSize,
} from "@depute/core";
import { bytesOf, cutPage, type Identity, mayActFor, ownOptions, tokenDenied } from "@depute/service";
import { createBreath } from "../breath.ts";
import { toDocument, toStored } from "../documents.ts";
import { byOf } from "../judging.ts";
import { validateContract } from "../rules/contract-validation.ts";
import { assertBudget, MAX_LINEAGE, type Part, type Plan, validatePlan } from "../rules/decomposition.ts";
import { tooMany } from "../rules/limits.ts";
import { getContract, insertContract } from "../store/contracts.ts";
import type { StoredDocument } from "../store/documents.ts";
import {
  getSubContract,
  insertSubContract,
  lineageOf,
  listSubContracts,
  partsOf,
  type SubContractRow,
} from "../store/sub-contracts.ts";
import type { Verifier } from "../verifier.ts";

/** Most parts of one contract, all plans together. */
const MAX_PARTS = 10_000;

const MODES = { sequential: DecompositionMode.SEQUENTIAL, parallel: DecompositionMode.PARALLEL } as const;

/** Splits a contract into parts, all or none (DelegateOS 14.3). */
export async function decomposeContract(
  verifier: Verifier,
  request: DecomposeContractRequest,
  context: HandlerContext,
) {
  const { store, clock, engine } = verifier;
  const { contract: parent } = await verifier.contracts.get(request.parentId);
  const parts = request.parts.map(({ contract, dependsOn }): Part => {
    if (contract === undefined) throw invalid("parts", "a part without a contract");
    return { contract: toDocument("contract", contract), dependsOn };
  });
  const mode = request.mode === DecompositionMode.SEQUENTIAL ? "sequential" : "parallel";
  const plan: Plan = { parent, mode, parts };
  const breathe = createBreath();
  const documents: StoredDocument[] = [];
  for (const { contract } of parts) {
    documents.push(await toStored(engine, "contract", contract, clock.now(), breathe));
  }
  const identity = await assertMayDecompose(verifier, plan, request, context);
  const dependencies = validatePlan(plan);
  for (const [i, { contract }] of parts.entries()) {
    const compilable = inPart(i, () => validateContract(contract, clock.now(), verifier.names));
    await verifier.checker.compile(
      compilable.map((item) => ({ ...item, field: partField(i, item.field) })),
      byOf({ identity, signal: context.signal }),
    );
  }
  const planId = planIdOf(verifier, plan, documents);
  await store.write(async (tx) => {
    const known = await Promise.all(documents.map(({ id }) => getSubContract(tx, id)));
    if (known.every((row) => row?.planId === planId && row.parentId === parent.id)) return;
    const { count, budget } = await partsOf(tx, parent.id);
    assertBudget(parent, parts, budget);
    if (count + parts.length > MAX_PARTS) throw tooMany("sub_contracts", MAX_PARTS);
    if ((await lineageOf(tx, parent.id)).length + 1 >= MAX_LINEAGE) throw tooMany("lineage", MAX_LINEAGE);
    for (const [i, document] of documents.entries()) {
      const { contract } = parts[i] as Part;
      // Only a new contract becomes a part, so that none can be above itself.
      if ((await getContract(tx, document.id)) !== undefined) throw contractExists(document);
      await insertContract(tx, document, contract.issuer);
      await insertSubContract(tx, {
        contractId: contract.id,
        parentId: parent.id,
        planId,
        mode,
        dependsOn: JSON.stringify(dependencies.get(contract.id) ?? []),
        budget: contract.constraints.maxBudgetMicrocents,
        place: count + i + 1,
      });
    }
  });
  return { planId, contractIds: parts.map(({ contract }) => contract.id) };
}

/**
 * The parts' issuer signed them, so it is he who splits; he has to be the parent's issuer or whom a token hands the
 * parent's work to.
 */
async function assertMayDecompose(
  { authority, tokens, clock }: Verifier,
  { parent, parts }: Plan,
  request: DecomposeContractRequest,
  context: HandlerContext,
): Promise<Identity> {
  const identity = await authority.identify(context);
  const issuer = parts[0]?.contract.issuer ?? "";
  if (parts.some(({ contract }) => contract.issuer !== issuer)) {
    throw invalid("parts", "the parts of a plan have one issuer");
  }
  if (!mayActFor(identity, issuer)) throw notAllowed("the caller is not the issuer of the parts");
  if (issuer === parent.issuer) return identity;
  if (request.token === undefined) throw notAllowed("the parts are not issued by the contract's issuer");
  const { delegatee, result } = await tokens.inspectToken(
    { token: request.token, contractId: parent.id },
    ownOptions(context, clock),
  );
  if (result.case !== "scope") throw tokenDenied(result.value);
  if (delegatee !== issuer)
    throw notAllowed("the token does not hand the contract's work to the parts' issuer");
  return identity;
}

export async function getContractLineage(
  { store, authority, contracts }: Verifier,
  { id }: GetContractLineageRequest,
  context: HandlerContext,
) {
  await authority.identify(context);
  await contracts.get(id);
  return { ancestorIds: await store.read((tx) => lineageOf(tx, id)) };
}

export async function listSubContractsOf(
  { store, authority, contracts }: Verifier,
  request: ListSubContractsRequest,
  context: HandlerContext,
) {
  await authority.identify(context);
  await contracts.get(request.parentId);
  const filters = { list: "sub_contracts", parent: request.parentId };
  const [after = 0] = decodePageToken(request.pageToken, filters) ?? [];
  const size = pageSize(request.pageSize);
  const rows = await store.read((tx) => listSubContracts(tx, request.parentId, size + 1, Number(after)));
  const parts = rows.map((row) => ({ place: row.place, part: toMessage(row) }));
  const { items: page, more } = cutPage(parts, size, ({ part }) => bytesOf(SubContractSchema, part));
  const last = more ? page.at(-1) : undefined;
  return {
    subContracts: page.map(({ part }) => part),
    nextPageToken: last === undefined ? "" : encodePageToken([last.place], filters),
  };
}

function toMessage({ contractId, parentId, planId, mode, dependsOn, budget }: SubContractRow): SubContract {
  return create(SubContractSchema, {
    contractId,
    parentId,
    planId,
    mode: MODES[mode],
    dependsOn: JSON.parse(dependsOn) as string[],
    maxBudgetMicrocents: BigInt(budget),
  });
}

/** The same plan has the same id, so that it can be sent again. */
function planIdOf({ engine }: Verifier, { parent, mode, parts }: Plan, documents: readonly StoredDocument[]) {
  const body = [parent.id, mode, parts.map(({ dependsOn }, i) => [documents[i]?.digest ?? "", dependsOn])];
  return `plan_${encodeHex(engine.sha256(canonicalBytes(body))).slice(0, 12)}`;
}

/** Names the part in the fields that a contract's rules name. */
function inPart<T>(i: number, validate: () => T): T {
  try {
    return validate();
  } catch (error) {
    if (!(error instanceof DeputeError)) throw error;
    const violations = error.violations.map((each) => ({ ...each, field: partField(i, each.field) }));
    throw error.with({ violations });
  }
}

function partField(i: number, field: string): string {
  return `parts[${i}].${field}`;
}

function contractExists({ id }: StoredDocument): DeputeError {
  return new DeputeError(
    ErrorReason.CONTRACT_EXISTS,
    "a part has the id of a contract that is there already",
    {
      metadata: { contract: id },
    },
  );
}

function notAllowed(message: string): DeputeError {
  return new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, message);
}
