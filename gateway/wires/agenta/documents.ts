import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import type { Validated } from "../../src/validated.ts";
import { agentCard, pricingIndex, siteIndex, specsIndex, verificationIndex } from "./indexes.ts";
import { type Manifest, manifestHtml, manifestMarkdown } from "./pages.ts";

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

/** A document as it is published. */
export interface PublishedDocument extends Validated {
  readonly path: string;
  readonly bytes: Buffer;
}

/** Documents change with a release only; a cache may keep one for an hour without asking. */
const CACHE_CONTROL = "public, max-age=3600";

/** Whether the protocol's own authors wrote a document, byte for byte, or it says what this platform makes of it. */
type Source =
  | { readonly file: string }
  | { readonly module: string; readonly write: (publicUrl: string, manifest: Manifest) => string };

const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`;

interface Entry {
  readonly path: string;
  readonly contentType: string;
  readonly source: Source;
}

/** What is published, and where. (Agenta index.json) */
const ENTRIES: readonly Entry[] = [
  ...AGENTA_MESSAGES.map((message) => ({
    path: `/schemas/${FAMILY}/${schemaFile(message)}`,
    contentType: "application/schema+json",
    source: { file: schemaFile(message) },
  })),
  {
    path: `/protocols/${FAMILY}/index.json`,
    contentType: "application/json",
    source: { file: "manifest.json" },
  },
  {
    path: `/protocols/${FAMILY}`,
    contentType: "text/html; charset=utf-8",
    source: { module: "pages.ts", write: (url, manifest) => manifestHtml(url, manifest) },
  },
  {
    path: `/artifacts/protocols/${FAMILY}.md`,
    contentType: "text/markdown; charset=utf-8",
    source: { module: "pages.ts", write: (url, manifest) => manifestMarkdown(url, manifest) },
  },
  indexed("/.well-known/agent.json", agentCard),
  indexed("/index.json", siteIndex),
  indexed("/specs/index.json", specsIndex),
  indexed("/pricing/index.json", pricingIndex),
  indexed("/verification/index.json", verificationIndex),
];

function indexed(path: string, index: (publicUrl: string, manifest: Manifest) => unknown): Entry {
  const write = (url: string, manifest: Manifest) => json(index(url, manifest));
  return { path, contentType: "application/json", source: { module: "indexes.ts", write } };
}

/** Where documents are. */
export const PATHS: readonly string[] = ENTRIES.map(({ path }) => path);

export function schemaFile(message: AgentaMessage): string {
  return `${message}.schema.json`;
}

/** The bytes of a file of the documents. @throws Error when it is not there */
export function readDocument(file: string): Buffer {
  return readFileSync(new URL(file, FOLDER));
}

/**
 * The documents that this platform publishes for the family, read once.
 *
 * @param publicUrl the address under which clients know the platform, without a trailing slash
 */
export function publishedDocuments(publicUrl: string): PublishedDocument[] {
  const manifest = JSON.parse(readDocument("manifest.json").toString("utf8")) as Manifest;
  return ENTRIES.map(({ path, contentType, source }) => {
    const isFile = "file" in source;
    const bytes = isFile ? readDocument(source.file) : Buffer.from(source.write(publicUrl, manifest));
    const origin = isFile ? new URL(source.file, FOLDER) : new URL(source.module, import.meta.url);
    return {
      path,
      bytes,
      contentType,
      cacheControl: CACHE_CONTROL,
      // Of the bytes, so that every replica gives the same.
      etag: `"${createHash("sha256").update(bytes).digest("base64url")}"`,
      modifiedMs: statSync(origin).mtimeMs,
    };
  });
}
