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
  type Owned,
  owningOrganization,
  pageSize,
} from "@depute/core";
import { bytesOf, cutPage, type Identity, mayActFor, ownOptions, tokenDenied } from "@depute/service";
import { toDocument, toStored } from "../documents.ts";
import { checkCallerOf } from "../output-verification.ts";
import { validateContract } from "../rules/contract-validation.ts";
import { assertBudget, MAX_LINEAGE, type Part, type Plan, validatePlan } from "../rules/decomposition.ts";
import { tooMany } from "../rules/limits.ts";
import { getContract, insertContract } from "../store/contracts.ts";
import type { SignedDocument } from "../store/documents.ts";
import {
  getSubContract,
  insertSubContract,
  lineageOf,
  listSubContracts,
  partsOf,
  type SubContractRow,
} from "../store/sub-contracts.ts";
import type { Verifier } from "../verifier.ts";
import { createYieldToEventLoop } from "../yield-to-event-loop.ts";

/** Maximum number of sub-contracts of one contract, over all plans of that contract. */
const MAX_PARTS = 10_000;

const MODES = { sequential: DecompositionMode.SEQUENTIAL, parallel: DecompositionMode.PARALLEL } as const;

/** Splits a contract into sub-contracts (DelegateOS 14.3). Stores all sub-contracts, or none of them. */
export async function decomposeContract(
  verifier: Verifier,
  request: DecomposeContractRequest,
  context: HandlerContext,
) {
  const { store, clock, engine } = verifier;
  const { contract: parent, organization } = await verifier.contracts.get(request.parentId);
  const parts = request.parts.map(({ contract, dependsOn }): Part => {
    if (contract === undefined) throw invalid("parts", "every part needs a contract");
    return { contract: toDocument("contract", contract), dependsOn };
  });
  const mode = request.mode === DecompositionMode.SEQUENTIAL ? "sequential" : "parallel";
  const plan: Plan = { parent, mode, parts };
  const yieldToEventLoop = createYieldToEventLoop(verifier);
  const documents: SignedDocument[] = [];
  for (const { contract } of parts) {
    documents.push(await toStored(engine, "contract", contract, clock.now(), yieldToEventLoop));
  }
  const identity = await assertMayDecompose(verifier, plan, request, context);
  const dependencies = validatePlan(plan);
  for (const [i, { contract }] of parts.entries()) {
    const compilable = withPartField(i, () => validateContract(contract, clock.now(), verifier.names));
    await verifier.checker.compile(
      compilable.map((item) => ({ ...item, field: partField(i, item.field) })),
      checkCallerOf({ identity, signal: context.signal }),
    );
  }
  const planId = planIdOf(verifier, plan, documents);
  await store.write(async (tx) => {
    const existing = await Promise.all(documents.map(({ id }) => getSubContract(tx, id)));
    if (existing.every((row) => row?.planId === planId && row.parentId === parent.id)) return;
    const { count, budget } = await partsOf(tx, parent.id);
    assertBudget(parent, parts, budget);
    if (count + parts.length > MAX_PARTS) throw tooMany("sub_contracts", MAX_PARTS);
    if ((await lineageOf(tx, parent.id)).length + 1 >= MAX_LINEAGE) throw tooMany("lineage", MAX_LINEAGE);
    for (const [i, document] of documents.entries()) {
      const { contract } = parts[i] as Part;
      // Each sub-contract must be a new contract. Otherwise a contract could become its own ancestor.
      if ((await getContract(tx, document.id)) !== undefined) throw contractExists(document);
      const owned = { ...document, organization: owningOrganization(identity, { organization }) };
      await insertContract(tx, owned, contract.issuer);
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
 * Requires that the caller may issue the sub-contracts. Their issuer must be the parent's issuer, or the holder of a
 * token that delegates the parent contract. The caller must be allowed to act for that issuer.
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
    throw invalid("parts", "all parts of a plan need the same issuer");
  }
  if (!mayActFor(identity, issuer))
    throw notAllowed("the caller is not the issuer of the parts; call as their issuer");
  if (issuer === parent.issuer) return identity;
  if (request.token === undefined)
    throw notAllowed(
      "the issuer of the parts is not the contract's issuer; send a token that delegates the contract to it",
    );
  const { delegatee, result } = await tokens.inspectToken(
    { token: request.token, contractId: parent.id },
    ownOptions(context, clock),
  );
  if (result.case !== "scope") throw tokenDenied(result.value);
  if (delegatee !== issuer)
    throw notAllowed("the token does not delegate the contract to the issuer of the parts");
  return identity;
}

export async function getContractLineage(
  { store, authority, contracts }: Verifier,
  { contractId: id }: GetContractLineageRequest,
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
  const parent = await contracts.get(request.parentId);
  const filters = { list: "sub_contracts", parent: request.parentId };
  const [after = 0] = decodePageToken(request.pageToken, filters) ?? [];
  const size = pageSize(request.pageSize);
  const rows = await store.read((tx) => listSubContracts(tx, request.parentId, size + 1, Number(after)));
  const parts = rows.map((row) => ({ place: row.place, part: toMessage(row, parent) }));
  const { items: page, more } = cutPage(parts, size, ({ part }) => bytesOf(SubContractSchema, part));
  const last = more ? page.at(-1) : undefined;
  return {
    subContracts: page.map(({ part }) => part),
    nextPageToken: last === undefined ? "" : encodePageToken([last.place], filters),
  };
}

/** Converts a sub-contract to its message, with the owning organization of the parent contract. */
function toMessage(
  { contractId, parentId, planId, mode, dependsOn, budget }: SubContractRow,
  { organization }: Owned,
): SubContract {
  return create(SubContractSchema, {
    organization,
    contractId,
    parentId,
    planId,
    mode: MODES[mode],
    dependsOn: JSON.parse(dependsOn) as string[],
    maxBudgetMicrocents: BigInt(budget),
  });
}

/** Returns the id of a plan. The id is a digest of the plan, so a replay returns the same id. */
function planIdOf({ engine }: Verifier, { parent, mode, parts }: Plan, documents: readonly SignedDocument[]) {
  const body = [parent.id, mode, parts.map(({ dependsOn }, i) => [documents[i]?.digest ?? "", dependsOn])];
  return `plan_${encodeHex(engine.sha256(canonicalBytes(body))).slice(0, 12)}`;
}

/** Runs `validate`. Adds the sub-contract's position to the field names in its errors. */
function withPartField<T>(i: number, validate: () => T): T {
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

function contractExists({ id }: SignedDocument): DeputeError {
  return new DeputeError(
    ErrorReason.CONTRACT_EXISTS,
    "a part has the id of an existing contract; use a new id",
    {
      metadata: { contract: id },
    },
  );
}

function notAllowed(message: string): DeputeError {
  return new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, message);
}
