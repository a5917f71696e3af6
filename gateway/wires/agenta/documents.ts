import { createHash } from "node:crypto";
import { bytesOfFile, modifiedMs } from "@depute/service";
import type { Validated } from "../../edge/validated.ts";
import { agentCard, pricingIndex, siteIndex, specsIndex, verificationIndex } from "./indexes.ts";
import { type Manifest, manifestHtml, manifestMarkdown } from "./pages.ts";

/** The name of the protocol family in addresses. */
export const FAMILY = "agenta.delegation.v0";

/** The names of the four message schemas of the family. */
export const AGENTA_MESSAGES = [
  "offer",
  "execution_request",
  "execution_receipt",
  "verification_result",
] as const;

export type AgentaMessage = (typeof AGENTA_MESSAGES)[number];

const FOLDER = new URL("./documents/", import.meta.url);
/** The file of the protocol's manifest, from which the platform writes further documents. */
const MANIFEST = "manifest.json";

/** A document as the platform publishes it. */
export interface PublishedDocument extends Validated {
  readonly path: string;
  readonly bytes: Buffer;
}

/** Documents change only with a release, so caches may keep them for an hour without revalidation. */
const CACHE_CONTROL = "public, max-age=3600";

/** The origin of a document: either the protocol's authors published it, or this platform generates it. */
type Source =
  | { readonly file: string }
  | { readonly write: (publicUrl: string, manifest: Manifest) => string };

const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`;

interface Entry {
  readonly path: string;
  readonly contentType: string;
  readonly source: Source;
}

/** The published documents and their addresses. (Agenta index.json) */
const ENTRIES: readonly Entry[] = [
  ...AGENTA_MESSAGES.map((message) => ({
    path: `/schemas/${FAMILY}/${schemaFile(message)}`,
    contentType: "application/schema+json",
    source: { file: schemaFile(message) },
  })),
  {
    path: `/protocols/${FAMILY}/index.json`,
    contentType: "application/json",
    source: { file: MANIFEST },
  },
  {
    path: `/protocols/${FAMILY}`,
    contentType: "text/html; charset=utf-8",
    source: { write: (url, manifest) => manifestHtml(url, manifest) },
  },
  {
    path: `/artifacts/protocols/${FAMILY}.md`,
    contentType: "text/markdown; charset=utf-8",
    source: { write: (url, manifest) => manifestMarkdown(url, manifest) },
  },
  indexed("/.well-known/agent.json", agentCard),
  indexed("/index.json", siteIndex),
  indexed("/specs/index.json", specsIndex),
  indexed("/pricing/index.json", pricingIndex),
  indexed("/verification/index.json", verificationIndex),
];

function indexed(path: string, index: (publicUrl: string, manifest: Manifest) => unknown): Entry {
  const write = (url: string, manifest: Manifest) => json(index(url, manifest));
  return { path, contentType: "application/json", source: { write } };
}

/** The addresses of the documents, with the documents' media types. */
export const ADDRESSES: readonly Pick<Entry, "path" | "contentType">[] = ENTRIES;

export function schemaFile(message: AgentaMessage): string {
  return `${message}.schema.json`;
}

/**
 * Reads the bytes of a document's file.
 *
 * @throws Error if the file does not exist
 */
export function readDocument(file: string): Buffer {
  return bytesOfFile(new URL(file, FOLDER));
}

/**
 * Returns the documents that this platform publishes for the family. Each call reads the files again.
 *
 * @param publicUrl the address under which clients know the platform, without a trailing slash
 */
export function publishedDocuments(publicUrl: string): PublishedDocument[] {
  const manifest = JSON.parse(readDocument(MANIFEST).toString("utf8")) as Manifest;
  return ENTRIES.map(({ path, contentType, source }) => {
    const isFile = "file" in source;
    const bytes = isFile ? readDocument(source.file) : Buffer.from(source.write(publicUrl, manifest));
    return {
      path,
      bytes,
      contentType,
      cacheControl: CACHE_CONTROL,
      // The tag is a digest of the bytes, so all replicas send the same tag.
      etag: `"${createHash("sha256").update(bytes).digest("base64url")}"`,
      modifiedMs: modifiedMs(new URL(isFile ? source.file : MANIFEST, FOLDER)),
    };
  });
}
