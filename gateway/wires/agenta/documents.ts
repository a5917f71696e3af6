import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";

/** The family, as its addresses name it. */
export const FAMILY = "agenta.delegation.v0";

/** The family's four messages, by the name of their schema. */
export const AGENTA_MESSAGES = [
  "offer",
  "execution_request",
  "execution_receipt",
  "verification_result",
] as const;

export type AgentaMessage = (typeof AGENTA_MESSAGES)[number];

const FOLDER = new URL("./documents/", import.meta.url);

/** A document as it is published: byte for byte as the family's authors have it. */
export interface PublishedDocument {
  readonly path: string;
  readonly bytes: Buffer;
  readonly contentType: string;
  /** A strong validator: the digest of the bytes, so that every replica gives the same. */
  readonly etag: string;
  /** Epoch ms, whole seconds. */
  readonly modifiedMs: number;
}

export function schemaFile(message: AgentaMessage): string {
  return `${message}.schema.json`;
}

/** The bytes of a file of the documents. @throws Error when it is not there */
export function readDocument(file: string): Buffer {
  return readFileSync(new URL(file, FOLDER));
}

/** The documents that this platform publishes for the family, read once. */
export function publishedDocuments(): PublishedDocument[] {
  const schemas = AGENTA_MESSAGES.map((message) => {
    const file = schemaFile(message);
    return published(`/schemas/${FAMILY}/${file}`, file, "application/schema+json");
  });
  return [...schemas, published(`/protocols/${FAMILY}/index.json`, "manifest.json", "application/json")];
}

function published(path: string, file: string, contentType: string): PublishedDocument {
  const bytes = readDocument(file);
  const { mtimeMs } = statSync(new URL(file, FOLDER));
  return {
    path,
    bytes,
    contentType,
    etag: `"${createHash("sha256").update(bytes).digest("base64url")}"`,
    modifiedMs: Math.floor(mtimeMs / 1000) * 1000,
  };
}
