import { canonicalBytes, decodeBase64Url, isObject } from "@depute/core";
import {
  AUTHORITY_BUNDLE_FORMAT,
  type AuthorityBundle,
  type AuthorityStatement,
  authoritySigningDigest,
  type LogProof,
  MAX_AUTHORITY_BUNDLE,
  proofsDigest,
} from "./authority-bundle.ts";
import { type BundleCheck, check, subjectChecks } from "./authority-subject.ts";
import type { CryptoEngine } from "./engine.ts";
import { revocationId, revocationIds } from "./payload.ts";
import { parsePrincipal } from "./principal.ts";
import { parseToken } from "./serialise.ts";
import { verifyObject } from "./signed-object.ts";
import { parseTime } from "./time.ts";
import { type LogEntryKind, logEntryBytes } from "./transparency/log-entry.ts";
import { verifyLogHead } from "./transparency/log-head.ts";
import { leafHash, verifyInclusion } from "./transparency/merkle.ts";
import { SJT_FORMAT } from "./types.ts";
import { verifyToken } from "./verify.ts";

export interface BundleVerdict {
  /** Whether every check passed. */
  readonly ok: boolean;
  readonly checks: readonly BundleCheck[];
  /** The statement of a bundle that has the right form. Trust it only if `ok` is true. */
  readonly statement?: AuthorityStatement;
}

/** The keys that the reader of a bundle trusts. */
export interface TrustedKeys {
  /** Principals whose statements and root blocks the check accepts. */
  readonly roots: ReadonlySet<string>;
  /** Principals of transparency logs. The proof of a log outside this set fails. */
  readonly logs: ReadonlySet<string>;
}

/**
 * Verifies a bundle offline: the platform's signature, the links and digests of the blocks, and each proof in the
 * bundle. Returns a verdict for every text and never throws.
 */
export function verifyAuthorityBundle(
  engine: CryptoEngine,
  text: string,
  trusted: TrustedKeys,
): BundleVerdict {
  const bundle = readBundle(text);
  if (bundle === undefined) return failed("form", `the text is no ${AUTHORITY_BUNDLE_FORMAT}`);
  try {
    const checks = [
      check("signature", signatureFault(engine, bundle, trusted), `signed by ${bundle.signer}`),
      ...(bundle.statement.proofs === undefined
        ? []
        : [check("proofs", proofsFault(engine, bundle), "the statement names these proofs")]),
      check("blocks", blocksFault(engine, bundle), `${bundle.statement.blocks.length} blocks`),
      ...(bundle.token === undefined
        ? []
        : [check("token", tokenFault(engine, bundle, trusted), "each block is signed by its delegator")]),
      check(
        "revocations",
        revocationsFault(engine, bundle),
        `${bundle.revocations.length} signed revocations`,
      ),
      ...attestationChecks(engine, bundle, trusted),
      ...subjectChecks(bundle),
    ];
    return { ok: checks.every(({ ok }) => ok), checks, statement: bundle.statement };
  } catch {
    // A member has no canonical form, or its type is not the type that the form requires.
    return failed("form", "a member has the wrong type");
  }
}

function failed(name: BundleCheck["name"], detail: string): BundleVerdict {
  return { ok: false, checks: [{ name, ok: false, detail }] };
}

function readBundle(text: string): AuthorityBundle | undefined {
  if (text.length > MAX_AUTHORITY_BUNDLE) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value) || value.format !== AUTHORITY_BUNDLE_FORMAT) return undefined;
  const { statement, signer, signature, revocations } = value;
  const isWhole =
    isObject(statement) &&
    Array.isArray(statement.blocks) &&
    statement.blocks.every(isObject) &&
    typeof statement.time === "string" &&
    typeof statement.explainTime === "string" &&
    typeof signer === "string" &&
    typeof signature === "string" &&
    Array.isArray(revocations);
  return isWhole ? (value as unknown as AuthorityBundle) : undefined;
}

function signatureFault(
  engine: CryptoEngine,
  { statement, signer, signature }: AuthorityBundle,
  { roots }: TrustedKeys,
): string | undefined {
  if (!roots.has(signer)) return "signer: not a trusted root";
  const key = parsePrincipal(signer);
  const bytes = decodeBase64Url(signature);
  const holds =
    key !== undefined &&
    bytes !== undefined &&
    engine.verify(bytes, authoritySigningDigest(engine, statement), key);
  return holds ? undefined : "signature: not the signer's";
}

function proofsFault(engine: CryptoEngine, bundle: AuthorityBundle): string | undefined {
  const { format: _format, statement, signer: _signer, signature: _signature, ...proofs } = bundle;
  const isSame = statement.proofs === proofsDigest(engine, proofs);
  return isSame ? undefined : "proofs: other proofs than the statement names";
}

function blocksFault(engine: CryptoEngine, { statement }: AuthorityBundle): string | undefined {
  const { blocks, validThen, validNow, principal } = statement;
  for (const [i, { block, ...stated }] of blocks.entries()) {
    const above = blocks[i - 1];
    if (above !== undefined && stated.delegator !== above.delegatee) return `blocks[${i}].delegator`;
    if (above !== undefined && stated.depth !== above.depth + 1) return `blocks[${i}].depth`;
    if (above !== undefined && !atMost(stated.expireTime, above.expireTime)) return `blocks[${i}].expireTime`;
    if (block === undefined) continue;
    if (revocationId(engine, block) !== stated.revocationId) return `blocks[${i}].revocationId`;
    const signer = "issuer" in block ? block.issuer : block.attenuator;
    if (
      signer !== stated.delegator ||
      block.delegatee !== stated.delegatee ||
      block.delegationId !== stated.delegationId ||
      block.contractId !== stated.contractId
    ) {
      return `blocks[${i}].block`;
    }
  }
  if (blocks.length > 0 && blocks.at(-1)?.delegatee !== principal) return "principal";
  if (validThen !== blocks.every(({ validityThen }) => validityThen === "valid")) return "validThen";
  if (validNow !== blocks.every(({ validityNow }) => validityNow === "valid")) return "validNow";
  return undefined;
}

/**
 * Returns the fault of the bundle's token; undefined if the token is valid and has the statement's blocks. The
 * reader's own roots must accept the token. Lineages of contracts are not checked, because the platform's signature
 * covers them.
 */
function tokenFault(
  engine: CryptoEngine,
  { token = "", statement }: AuthorityBundle,
  { roots }: TrustedKeys,
): string | undefined {
  const input = { token, format: SJT_FORMAT } as const;
  const parsed = parseToken(input);
  if (!parsed.ok) return `token: ${parsed.denial.type}`;
  const result = verifyToken(engine, input, {
    trustedRoots: roots,
    revocations: { isRevoked: () => false },
    now: parseTime(parsed.token.authority.issuedAt) ?? 0,
    spentMicrocents: 0,
    holder: "bearer",
    subContract: () => true,
  });
  // The chain is checked before the budget. A chain with a budget of zero is valid, although nothing may be spent under
  // it.
  if (!result.ok && result.denial.type !== "budget_exceeded") return `token: ${result.denial.type}`;
  const ids = revocationIds(engine, parsed.token);
  const isSame =
    ids.length === statement.blocks.length && ids.every((id, i) => id === statement.blocks[i]?.revocationId);
  return isSame ? undefined : "token: other blocks than the statement";
}

function revocationsFault(
  engine: CryptoEngine,
  { revocations, statement }: AuthorityBundle,
): string | undefined {
  for (const [i, entry] of revocations.entries()) {
    const checked = verifyObject(engine, "revocation", entry);
    if (!checked.ok) return `revocations[${i}]: ${checked.refusal.detail}`;
    const level = statement.blocks.findIndex((block) => block.revocationId === entry.revocationId);
    const block = statement.blocks[level];
    if (block === undefined) return `revocations[${i}].revocationId: no block of the statement`;
    const rightful = [...statement.blocks.slice(0, level + 1).map((one) => one.delegator), block.delegatee];
    if (!rightful.includes(entry.revokedBy)) return `revocations[${i}].revokedBy: no rightful revoker`;
    if (block.validityNow !== "revoked")
      return `blocks[${level}].validityNow: revoked, and stated as ${block.validityNow}`;
  }
  return undefined;
}

function attestationChecks(
  engine: CryptoEngine,
  { attestation, attestationProof, statement }: AuthorityBundle,
  { logs }: TrustedKeys,
): BundleCheck[] {
  if (attestation === undefined) return [];
  const checked = verifyObject(engine, "attestation", attestation);
  const last = statement.blocks.at(-1);
  const fault = !checked.ok
    ? checked.refusal.detail
    : checked.object.principal !== last?.delegatee || checked.object.delegationId !== last.delegationId
      ? "attestation: not by the delegatee of the last block"
      : undefined;
  const checks = [check("attestation", fault, "signed by the last delegatee")];
  if (attestationProof === undefined) return checks;
  return [...checks, check("log", logFault(engine, attestation, attestationProof, logs), "in the log")];
}

const ATTESTATION_LEAF: LogEntryKind = "attestation";

function logFault(
  engine: CryptoEngine,
  document: unknown,
  { index, time, hashes, head }: LogProof,
  logs: ReadonlySet<string>,
): string | undefined {
  if (!logs.has(head.log)) return "head.log: not a trusted log";
  const digest = engine.sha256(canonicalBytes(document));
  const root = decodeBase64Url(head.rootHash);
  const signature = decodeBase64Url(head.signature);
  const proof = hashes.map((text) => decodeBase64Url(text) ?? new Uint8Array());
  if (root === undefined || signature === undefined) return "head: malformed";
  const { log, treeSize, time: headTime } = head;
  if (!verifyLogHead(engine, { log, treeSize, rootHash: root, time: headTime }, signature)) {
    return "head.signature: not the log's";
  }
  const sha256 = (bytes: Uint8Array) => engine.sha256(bytes);
  const leaf = leafHash(sha256, logEntryBytes({ kind: ATTESTATION_LEAF, digest, time }));
  return verifyInclusion(sha256, { index, treeSize, leaf, root, proof })
    ? undefined
    : "hashes: the log does not contain the attestation";
}

function atMost(time: string, limit: string): boolean {
  return (parseTime(time) ?? Number.NaN) <= (parseTime(limit) ?? Number.NaN);
}
