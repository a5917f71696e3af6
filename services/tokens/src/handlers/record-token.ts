import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  InspectTokenRequest,
  InspectTokenResponseSchema,
  RecordTokenRequest,
  RecordTokenResponseSchema,
} from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { type DenialReason, isAdmissible, parseToken } from "@depute/dct";
import type { Identity } from "@depute/service";
import type { TokensContext } from "../context.ts";
import { reasonText, refusedToken, toDenialReason } from "../rules/denials.ts";
import { blocksOf, toAuthorizedScope, toSerialized, toTokenBlocks } from "../rules/documents.ts";
import { record } from "./attenuation.ts";

/** Records the blocks of a token that another program created. The service does not store the token itself. */
export async function recordToken(
  context: TokensContext,
  request: RecordTokenRequest,
  identity: Identity,
): Promise<MessageInitShape<typeof RecordTokenResponseSchema>> {
  const { engine, chains, audit } = context;
  const refuse = (denial: DenialReason) => {
    const reason = reasonText(denial);
    audit.assertRoom();
    audit.add({
      kind: "record",
      caller: identity.principal,
      principal: "",
      decision: "denied",
      reason,
      blocks: [],
    });
    return refusedToken(denial);
  };
  const checked = await chains.check(toSerialized(request.token));
  if (!checked.ok) throw refuse(checked.denial);
  const blocks = blocksOf(engine, checked.token);
  for (const [i, { delegatee }] of blocks.entries()) {
    if (isAdmissible(engine, delegatee)) continue;
    throw refuse({ type: "malformed_token", detail: `delegatee of block ${i}: not a key of prime order` });
  }
  await record(context, identity, "record", checked.token);
  return { delegationId: checked.scope.delegationId, blocks: toTokenBlocks(blocks) };
}

/** Returns the content of a token, even if the token is denied. A text that is no token is an error. */
export async function inspectToken(
  { engine, chains, audit }: TokensContext,
  request: InspectTokenRequest,
  { principal: caller }: Identity,
): Promise<MessageInitShape<typeof InspectTokenResponseSchema>> {
  const input = toSerialized(request.token);
  const parsed = parseToken(input);
  const blocks = parsed.ok ? blocksOf(engine, parsed.token) : [];
  const { requiredCapabilities, contractId } = request;
  const checked = parsed.ok
    ? await chains.check(input, { requiredCapabilities, ...(contractId !== "" && { contractId }) })
    : parsed;
  audit.assertRoom();
  audit.add({
    ...{ kind: "inspect", caller, principal: "", blocks: blocks.map(({ revocationId }) => revocationId) },
    ...(checked.ok
      ? { decision: "allowed", reason: "" }
      : { decision: "denied", reason: reasonText(checked.denial) }),
  });
  if (!parsed.ok) throw refusedToken(parsed.denial);
  return {
    blocks: toTokenBlocks(blocks),
    delegatee: blocks.at(-1)?.delegatee ?? "",
    result: checked.ok
      ? { case: "scope", value: toAuthorizedScope(checked.scope) }
      : { case: "denial", value: toDenialReason(checked.denial) },
  };
}
