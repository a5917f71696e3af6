import { canonicalBytes, encodeBase64Url } from "@depute/core";
import type { CryptoEngine } from "./engine.ts";
import type { Attenuation, Authority, Keypair, RevocationEntry } from "./types.ts";

/** The value of `format` in an authority bundle. */
export const AUTHORITY_BUNDLE_FORMAT = "depute-authority-bundle/1";
/** Maximum length of a bundle's text, in UTF-16 code units. */
export const MAX_AUTHORITY_BUNDLE = 1_048_576;

/** Whether a block was in force at a time; otherwise the reason why not. */
export type BlockValidity = "valid" | "not_recorded" | "expired" | "revoked";

/** One delegation of an explained chain. Times are RFC 3339 in UTC with milliseconds. */
export interface StatedBlock {
  readonly revocationId: string;
  readonly delegationId: string;
  readonly delegator: string;
  readonly delegatee: string;
  readonly contractId: string;
  readonly depth: number;
  readonly recordTime: string;
  readonly expireTime: string;
  readonly validityThen: BlockValidity;
  readonly validityNow: BlockValidity;
  /**
   * The block without its signature; its digest is the revocation id. Absent for a block that was recorded without
   * its content.
   */
  readonly block?: Authority | Attenuation;
}

/** What a statement says of a receipt. The bundle contains the receipt itself. */
export interface StatedReceipt {
  readonly requestId: string;
  /** The position of the receipt among the receipts of its execution, from 1. */
  readonly sequence: number;
  /** The principal of the buyer. */
  readonly buyer: string;
  /** The organization that owns the execution; empty for none. */
  readonly organization: string;
}

/** One recorded decision on a tool call. */
export interface StatedDecision {
  /** The sequence of the audit record. */
  readonly sequence: number;
  readonly source: string;
  readonly caller: string;
  readonly time: string;
  readonly allowed: boolean;
  readonly reason: string;
}

/** The facts of a tool call, as the audit log recorded them. */
export interface StatedToolCall {
  /** The server and the tool, e.g. `mcp/files/read_text_file`. */
  readonly resource: string;
  /** Whether every decision allowed the call. */
  readonly allowed: boolean;
  readonly decisions: readonly StatedDecision[];
  /** The ids of the blocks of the presented token, beginning with the authority block. */
  readonly revocationIds: readonly string[];
}

/** The platform's statement about the authority of a subject. */
export interface AuthorityStatement {
  readonly kind: "delegation" | "task" | "token" | "attestation" | "receipt" | "tool_call";
  readonly subjectId: string;
  readonly principal: string;
  readonly onBehalfOf?: { readonly issuer: string; readonly subject: string; readonly principal: string };
  readonly blocks: readonly StatedBlock[];
  readonly time: string;
  readonly explainTime: string;
  readonly validThen: boolean;
  readonly validNow: boolean;
  /** The length and the head of the revocation log at `explainTime`. */
  readonly revocationLog: { readonly sequence: number; readonly head: string };
  /** Decisions of the audit log on these blocks; absent for callers that may not read the log. */
  readonly audit?: readonly unknown[];
  /** Present for the kind `receipt`. */
  readonly receipt?: StatedReceipt;
  /** Present for the kind `tool_call`. */
  readonly toolCall?: StatedToolCall;
  /** The digest of the bundle's proofs; see {@link proofsDigest}. Absent in statements of earlier versions. */
  readonly proofs?: string;
}

/** The place of a document in the transparency log (RFC 6962 2.1.1, 3.5). Bytes are base64url. */
export interface LogProof {
  readonly index: number;
  readonly time: number;
  readonly hashes: readonly string[];
  readonly head: {
    readonly log: string;
    readonly treeSize: number;
    readonly rootHash: string;
    readonly time: number;
    readonly signature: string;
  };
}

/** A statement with its proofs. */
export interface AuthorityBundle {
  readonly format: typeof AUTHORITY_BUNDLE_FORMAT;
  readonly statement: AuthorityStatement;
  readonly signer: string;
  /** The signer's Ed25519 signature over {@link authoritySigningDigest}, base64url. */
  readonly signature: string;
  /** The serialized token; absent unless the caller presented a token. */
  readonly token?: string;
  readonly revocations: readonly RevocationEntry[];
  readonly attestation?: Record<string, unknown>;
  readonly attestationProof?: LogProof;
  /** The receipt, as the protocol Agenta writes it; absent if the statement's kind is not `receipt`. */
  readonly receipt?: Record<string, unknown>;
}

const TAG = new TextEncoder().encode("delegateos-authoritystatement-v1\0");

/** Returns the 32 bytes that the signature of a statement covers: BLAKE2b-256 of a tag and the canonical JSON. */
export function authoritySigningDigest(engine: CryptoEngine, statement: AuthorityStatement): Uint8Array {
  const body = canonicalBytes(statement);
  const bytes = new Uint8Array(TAG.length + body.length);
  bytes.set(TAG);
  bytes.set(body, TAG.length);
  return engine.blake2b256(bytes);
}

/** The members of a bundle that are proofs. */
type Proofs = Omit<AuthorityBundle, "format" | "statement" | "signer" | "signature">;

/** Returns the digest of a bundle's proofs: base64url of the BLAKE2b-256 of their canonical JSON. */
export function proofsDigest(engine: CryptoEngine, proofs: Proofs): string {
  return encodeBase64Url(engine.blake2b256(canonicalBytes(proofs)));
}

/** Returns a signed bundle. The statement gets the digest of the proofs. */
export function signAuthorityBundle(
  engine: CryptoEngine,
  { statement: unbound, ...proofs }: Omit<AuthorityBundle, "format" | "signer" | "signature">,
  signer: Keypair,
): AuthorityBundle {
  const statement = { ...unbound, proofs: proofsDigest(engine, proofs) };
  const signature = encodeBase64Url(
    engine.sign(authoritySigningDigest(engine, statement), signer.privateKey),
  );
  return {
    format: AUTHORITY_BUNDLE_FORMAT,
    statement,
    signer: signer.principal.id,
    signature,
    ...proofs,
  };
}
