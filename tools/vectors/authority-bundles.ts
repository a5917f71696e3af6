import {
  type Attenuation,
  type Authority,
  type AuthorityBundle,
  type AuthorityStatement,
  createRevocation,
  formatTime,
  revocationIds,
  type SignedJSONToken,
  type StatedBlock,
  signAuthorityBundle,
  signObject,
  verifyAuthorityBundle,
} from "@depute/dct";
import { engine, keypairOf, NOW, principalOf, type VectorCase, type VectorFile } from "./shared.ts";
import { CHAIN, CONTRACT, textOf } from "./token-chain.ts";

/** JSON whose members a case changes. */
// biome-ignore lint/suspicious/noExplicitAny: a changed bundle has no type
type Changed = any;

/** A token of two blocks: from the root to alice, and from alice to bob. */
const TOKEN = CHAIN[1] as SignedJSONToken;
const DOCUMENTS: readonly (Authority | Attenuation)[] = [TOKEN.authority, ...TOKEN.attenuations];
const IDS = revocationIds(engine, TOKEN);

const BLOCKS: readonly StatedBlock[] = DOCUMENTS.map((block, depth) => ({
  revocationId: IDS[depth] ?? "",
  delegationId: block.delegationId,
  delegator: "issuer" in block ? block.issuer : block.attenuator,
  delegatee: block.delegatee,
  contractId: block.contractId,
  depth,
  recordTime: formatTime(NOW),
  expireTime: TOKEN.authority.expiresAt,
  validityThen: "valid",
  validityNow: "valid",
  block,
}));

const BASE = {
  principal: principalOf("bob"),
  blocks: BLOCKS,
  time: formatTime(NOW + 60_000),
  explainTime: formatTime(NOW + 120_000),
  validThen: true,
  validNow: true,
  revocationLog: { sequence: 7, head: "A".repeat(43) },
} as const;

const RECEIPT = {
  protocol_version: "agenta.delegation.v0",
  message_type: "execution_receipt",
  receipt_id: "receipt-0001",
  request_id: "request-0001",
  execution_id: "execution-0001",
  offer_id: "offer-0001",
  offer_version: "1",
  seller_agent_id: "seller",
  buyer_agent_id: "buyer",
  status: "accepted",
  issued_at: formatTime(NOW + 60_000),
};

const ATTESTATION = signObject(
  engine,
  "attestation",
  {
    ...{ id: "att_0000000000a1", version: "0.1", contractId: CONTRACT, type: "completion" },
    ...{ delegationId: DOCUMENTS[1]?.delegationId ?? "", principal: principalOf("bob") },
    createdAt: formatTime(NOW + 60_000),
    result: { success: true, output: { words: 3 }, costMicrocents: 1, durationMs: 5 },
    childAttestations: [],
  },
  keypairOf("bob"),
);

const RECEIPT_STATEMENT: AuthorityStatement = {
  ...BASE,
  ...{ kind: "receipt", subjectId: RECEIPT.receipt_id },
  receipt: {
    ...{ requestId: RECEIPT.request_id, sequence: 1 },
    ...{ buyer: principalOf("bob"), organization: "org:buyer" },
  },
};

const CALL_STATEMENT: AuthorityStatement = {
  ...BASE,
  ...{ kind: "tool_call", subjectId: "00000000-0000-4000-8000-000000000001" },
  toolCall: {
    resource: "mcp/files/read_text_file",
    allowed: true,
    decisions: [
      {
        ...{ sequence: 41, source: "tokens", caller: "local", time: formatTime(NOW + 60_000) },
        ...{ allowed: true, reason: "" },
      },
      {
        ...{ sequence: 43, source: "gateway", caller: principalOf("bob"), time: formatTime(NOW + 60_001) },
        ...{ allowed: true, reason: "" },
      },
    ],
    revocationIds: IDS,
  },
};

const REVOKED: AuthorityStatement = {
  ...BASE,
  ...{ kind: "token", subjectId: IDS[1] ?? "", validNow: false },
  blocks: BLOCKS.map((block, i) => (i === 1 ? { ...block, validityNow: "revoked" } : block)),
};
const REVOCATION = createRevocation(engine, IDS[1] ?? "", "block", keypairOf("alice"), NOW + 90_000);

type Proofs = Omit<AuthorityBundle, "format" | "statement" | "signer" | "signature">;

/** Returns a bundle of a statement and its proofs, signed by the platform. */
function signed(statement: AuthorityStatement, proofs: Partial<Proofs> = {}): AuthorityBundle {
  return signAuthorityBundle(engine, { statement, revocations: [], ...proofs }, keypairOf("root"));
}

/** Changes a statement before the platform signs it, as a faulty platform would. */
function faulty(
  statement: AuthorityStatement,
  change: (statement: Changed) => void,
  proofs: Partial<Proofs> = {},
) {
  const changed = structuredClone(statement) as Changed;
  change(changed);
  return signed(changed, proofs);
}

/** Changes a bundle after the signature. */
function altered(bundle: AuthorityBundle, change: (bundle: Changed) => void): unknown {
  const changed = structuredClone(bundle) as Changed;
  change(changed);
  return changed;
}

const receipt = signed(RECEIPT_STATEMENT, { receipt: RECEIPT });
const call = signed(CALL_STATEMENT);
const revoked = signed(REVOKED, { token: textOf(TOKEN), revocations: [REVOCATION] });
const attested = signed(
  { ...BASE, kind: "attestation", subjectId: ATTESTATION.id },
  { attestation: { ...ATTESTATION } },
);

const ROWS: readonly (readonly [name: string, bundle: unknown])[] = [
  ["a receipt", receipt],
  ["a tool call", call],
  ["a revoked token, with its revocation", revoked],
  ["an attestation", attested],
  [
    "a receipt with another status",
    altered(receipt, (bundle) => Object.assign(bundle.receipt, { status: "completed" })),
  ],
  ["a receipt that is gone", altered(receipt, (bundle) => delete bundle.receipt)],
  [
    "another receipt",
    faulty(RECEIPT_STATEMENT, (one) => Object.assign(one, { subjectId: "receipt-0002" }), {
      receipt: RECEIPT,
    }),
  ],
  [
    "the receipt of another request",
    faulty(RECEIPT_STATEMENT, (one) => Object.assign(one.receipt, { requestId: "request-0002" }), {
      receipt: RECEIPT,
    }),
  ],
  [
    "the receipt of another buyer",
    faulty(RECEIPT_STATEMENT, (one) => Object.assign(one.receipt, { buyer: principalOf("carol") }), {
      receipt: RECEIPT,
    }),
  ],
  ["no receipt", signed(RECEIPT_STATEMENT)],
  ["a call that presented other blocks", faulty(CALL_STATEMENT, (one) => one.toolCall.revocationIds.pop())],
  ["a call without a decision", faulty(CALL_STATEMENT, (one) => one.toolCall.decisions.splice(0))],
  [
    "a call that one decision denied",
    faulty(CALL_STATEMENT, (one) => Object.assign(one.toolCall.decisions[1], { allowed: false })),
  ],
  ["a decision that is gone", altered(call, (bundle) => bundle.statement.toolCall.decisions.pop())],
  [
    "another holder",
    altered(call, (bundle) => Object.assign(bundle.statement, { principal: principalOf("mallory") })),
  ],
  ["a revocation that is gone", altered(revoked, (bundle) => bundle.revocations.pop())],
  ["a token that is gone", altered(revoked, (bundle) => delete bundle.token)],
  [
    "a revoked block that is stated as valid",
    signed({ ...BASE, kind: "token", subjectId: IDS[1] ?? "" }, { revocations: [REVOCATION] }),
  ],
  [
    "a revocation by a stranger",
    signed(REVOKED, {
      revocations: [createRevocation(engine, IDS[1] ?? "", "block", keypairOf("mallory"), NOW)],
    }),
  ],
  [
    "the token of other blocks",
    signed(REVOKED, { token: textOf(CHAIN[0] as SignedJSONToken), revocations: [REVOCATION] }),
  ],
  [
    "a wider budget in a block",
    faulty(CALL_STATEMENT, (one) => Object.assign(one.blocks[0].block, { maxBudgetMicrocents: 2_000_000 })),
  ],
  [
    "a chain with a gap",
    faulty(CALL_STATEMENT, (one) => Object.assign(one.blocks[1], { delegator: principalOf("mallory") })),
  ],
  [
    "a verdict that the blocks do not bear out",
    faulty(CALL_STATEMENT, (one) => Object.assign(one, { validThen: false })),
  ],
  ["an attestation that is gone", altered(attested, (bundle) => delete bundle.attestation)],
  ["no attestation", signed({ ...BASE, kind: "attestation", subjectId: ATTESTATION.id })],
  [
    "another signer",
    signAuthorityBundle(engine, { statement: CALL_STATEMENT, revocations: [] }, keypairOf("mallory")),
  ],
  [
    "another format",
    altered(call, (bundle) => Object.assign(bundle, { format: "depute-authority-bundle/2" })),
  ],
];

export function authorityBundleVectors(): VectorFile {
  const roots = [principalOf("root")];
  const cases = ROWS.map(([name, value]): VectorCase => {
    const bundle: unknown = JSON.parse(JSON.stringify(value));
    const row = { name: `verify: ${name}`, operation: "verify", input: { bundle, roots } };
    const trusted = { roots: new Set(roots), logs: new Set<string>() };
    const { checks } = verifyAuthorityBundle(engine, JSON.stringify(bundle), trusted);
    const failed = checks.find(({ ok }) => !ok);
    return failed === undefined ? { ...row, expected: { valid: true } } : { ...row, refusal: failed.name };
  });
  return { specification: "authority-bundles.md", cases };
}
