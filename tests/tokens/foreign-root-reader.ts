import { execFileSync } from "node:child_process";
import { createPublicKey, verify } from "node:crypto";

/**
 * This file checks signatures of roots without code of the platform: with Ed25519 of node:crypto, and BLAKE2b-256
 * of Python's hashlib.
 */

type Json = Readonly<Record<string, unknown>>;

const PYTHON =
  "import hashlib, sys; print(hashlib.blake2b(sys.stdin.buffer.read(), digest_size=32).hexdigest())";

function blake2b256(bytes: Buffer): Buffer {
  return Buffer.from(execFileSync("python3", ["-c", PYTHON], { input: bytes }).toString().trim(), "hex");
}

/** Canonical JSON (RFC 8785) of values with ASCII names and whole numbers. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(",")}}`;
}

function holds(signature: Buffer, digest: Buffer, principal: string): boolean {
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: principal }, format: "jwk" });
  return verify(null, digest, key, signature);
}

/** Returns the principal of the root that a token names. */
export function issuerOf(token: string): string {
  return (JSON.parse(Buffer.from(token, "base64url").toString()) as { authority: { issuer: string } })
    .authority.issuer;
}

/** Whether the root that a token names is one of the given keys, and signed its first block. */
export function isOfRoot(token: string, roots: readonly string[]): boolean {
  const { authority, signatures } = JSON.parse(Buffer.from(token, "base64url").toString()) as {
    authority: Json;
    signatures: { signature: string }[];
  };
  const digest = blake2b256(Buffer.from(canonical({ authority })));
  const issuer = String(authority.issuer);
  const signature = Buffer.from(signatures[0]?.signature ?? "", "base64url");
  return roots.includes(issuer) && holds(signature, digest, issuer);
}

/** Whether both keys signed a statement of succession, as ListRootKeys returns it in JSON. */
export function isSuccession(statement: Json): boolean {
  const { earlier, successor, createTime, earlierSignature, successorSignature } = statement as Record<
    string,
    string
  >;
  const createdAt = new Date(createTime ?? "").toISOString();
  const tag = Buffer.from("delegateos-rootsuccession-v1\0");
  const digest = blake2b256(
    Buffer.concat([tag, Buffer.from(canonical({ from: earlier, to: successor, createdAt }))]),
  );
  return (
    holds(Buffer.from(earlierSignature ?? "", "base64"), digest, earlier ?? "") &&
    holds(Buffer.from(successorSignature ?? "", "base64"), digest, successor ?? "")
  );
}
