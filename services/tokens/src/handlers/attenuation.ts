import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  AttenuateTokenRequest,
  AttenuateTokenResponseSchema,
  PrepareAttenuationRequest,
  PrepareAttenuationResponseSchema,
} from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { invalid } from "@depute/core";
import {
  type Attenuation,
  attachAttenuationSignature,
  attenuationSigningInput,
  buildAttenuation,
  isAdmissible,
  newId,
  type SignedJSONToken,
  type SubContractRule,
  serialiseToken,
  TokenError,
} from "@depute/dct";
import type { Identity } from "@depute/service";
import type { TokensContext } from "../context.ts";
import type { Binding } from "../rules/bindings.ts";
import { linksOf } from "../rules/delegations.ts";
import { reasonText, refusedAttenuation, refusedToken } from "../rules/denials.ts";
import {
  type Block,
  bindingOf,
  blocksOf,
  fromBlock,
  fromSerialized,
  toBlock,
  toSerialized,
} from "../rules/documents.ts";

/** Checks a new block, and returns the bytes that its attenuator must sign (DelegateOS 3.4, steps 1 to 6). */
export async function prepareAttenuation(
  { engine, chains }: TokensContext,
  request: PrepareAttenuationRequest,
): Promise<MessageInitShape<typeof PrepareAttenuationResponseSchema>> {
  const checked = await chains.check(toSerialized(request.token));
  if (!checked.ok) throw refusedToken(checked.denial);
  const proposed = request.attenuation === undefined ? undefined : toBlock(request.attenuation);
  if (proposed === undefined) throw invalid("attenuation", "is required");
  if (!isAdmissible(engine, proposed.delegatee)) throw notAdmissible();
  const { token } = checked;
  const last = token.attenuations.at(-1) ?? token.authority;
  const blockDraft = {
    ...proposed,
    delegationId: proposed.delegationId || newId("del"),
    contractId: proposed.contractId || last.contractId,
  };
  const subContract = await chains.subContractsOf([token.authority, ...token.attenuations, blockDraft]);
  const attenuator = proposed.attenuator || last.delegatee;
  const block = asAttenuationError(() => buildAttenuation(token, blockDraft, attenuator, { subContract }));
  return { attenuation: fromBlock(block), digest: attenuationSigningInput(engine, token, block) };
}

/**
 * Appends a signed block (DelegateOS 3.4, steps 7 to 9). The service verifies the new token before it returns the
 * token.
 */
export async function attenuateToken(
  context: TokensContext,
  request: AttenuateTokenRequest,
  identity: Identity,
): Promise<MessageInitShape<typeof AttenuateTokenResponseSchema>> {
  const { engine, chains } = context;
  const checked = await chains.check(toSerialized(request.token));
  if (!checked.ok) {
    note(context, identity, reasonText(checked.denial), []);
    throw refusedToken(checked.denial);
  }
  const block = request.attenuation === undefined ? undefined : toBlock(request.attenuation);
  if (block === undefined) throw invalid("attenuation", "is required");
  if (!isAdmissible(engine, block.delegatee)) throw notAdmissible();
  const { authority, attenuations } = checked.token;
  const subContract = await chains.subContractsOf([authority, ...attenuations, block]);
  const token = append(context, checked.token, block, request.signature, identity, subContract);
  const serialised = asAttenuationError(() => serialiseToken(token));
  const blocks = blocksOf(engine, token);
  const narrower = await chains.check(serialised);
  if (!narrower.ok) {
    note(context, identity, reasonText(narrower.denial), blocks);
    throw refusedToken(narrower.denial);
  }
  await record(context, identity, "attenuate", token, bindingOf(request.binding));
  const last = blocks.at(-1);
  return {
    token: fromSerialized(serialised),
    delegationId: last?.delegationId ?? "",
    revocationId: last?.revocationId ?? "",
  };
}

/**
 * Records the blocks and delegations of a verified chain, and writes an audit record.
 *
 * @throws DeputeError DELEGATION_INVALID, TOKEN_DENIED
 */
export async function record(
  { engine, store, delegations, audit, notes }: TokensContext,
  { principal: caller, organization }: Identity,
  kind: "attenuate" | "record",
  token: SignedJSONToken,
  binding: Binding = bindingOf(undefined),
): Promise<void> {
  const links = linksOf(engine, token);
  const blocks = links.map(({ block }) => block);
  await store.write(async (tx) => {
    await delegations.record(tx, links, { organization });
    await notes.bind(tx, blocks.at(-1)?.revocationId ?? "", binding);
    await audit.write(tx, {
      kind,
      caller,
      principal: blocks.at(-1)?.delegatee ?? "",
      decision: "allowed",
      reason: "",
      blocks: blocks.map(({ revocationId }) => revocationId),
    });
  });
}

function append(
  context: TokensContext,
  token: SignedJSONToken,
  block: Attenuation,
  signature: Uint8Array,
  identity: Identity,
  subContract: SubContractRule,
): SignedJSONToken {
  try {
    return attachAttenuationSignature(context.engine, token, block, signature, { subContract });
  } catch (error) {
    if (!(error instanceof TokenError)) throw error;
    note(context, identity, reasonText(error.denial), blocksOf(context.engine, token));
    throw refusedAttenuation(error.denial);
  }
}

/**
 * Runs `make`, which creates a block, and returns its result. Converts a TokenError to the DeputeError of a refused
 * attenuation.
 */
function asAttenuationError<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw error instanceof TokenError ? refusedAttenuation(error.denial) : error;
  }
}

function note(
  { audit }: TokensContext,
  { principal: caller }: Identity,
  reason: string,
  blocks: readonly Block[],
): void {
  audit.assertRoom();
  audit.add({
    kind: "attenuate",
    caller,
    principal: "",
    decision: "denied",
    reason,
    blocks: blocks.map(({ revocationId }) => revocationId),
  });
}

function notAdmissible() {
  return invalid("attenuation.delegatee", "is not an Ed25519 public key of prime order");
}
