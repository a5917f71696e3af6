import type { PagePosition } from "@depute/core";
import { countJsonValues } from "@depute/service";
import { integer, type ReadTx, type RowOf, row, type SqlValue, text } from "@depute/store";

/** A signed document that is to be stored. Its canonical JSON is authoritative, because the signature covers it. */
export interface SignedDocument {
  id: string;
  /** base64url of the digest that the signature covers. Two documents with equal digests are the same document. */
  digest: string;
  /** Canonical JSON including the signature. */
  document: string;
  /** The time at which the service stored the document, in epoch milliseconds. */
  storeTime: number;
}

/** A signed document in the store. */
export interface StoredDocument extends SignedDocument {
  /** The organization that owns the document; empty without an organization. */
  organization: string;
}

export const STORED_DOCUMENT_ROW = row<StoredDocument>({
  id: text,
  digest: text,
  document: text,
  storeTime: integer,
  organization: text,
});

export interface Page {
  documents: StoredDocument[];
  /** The position at which the next page begins; undefined on the last page. */
  next: PagePosition | undefined;
}

/**
 * Maximum number of characters that the documents on one page have together, so that the page's encoding takes a few
 * milliseconds. gRPC clients accept 4 MiB by default.
 */
export const MAX_PAGE_CHARS = 1024 * 1024;

/** Maximum number of JSON values and members on one page, so that the page's encoding takes a few milliseconds. */
export const MAX_PAGE_VALUES = 16_384;

const KEY_ROW = row({ id: text, time: integer, size: integer });
type Key = RowOf<typeof KEY_ROW>;

/**
 * Reads a page: first the keys, then the documents. The page ends before the document that would exceed MAX_PAGE_CHARS
 * or MAX_PAGE_VALUES, but has at least one document.
 *
 * @param keysSql selects id, time and length of the page's documents and of one more, in the list's order
 * @param readOne reads a document by its id
 */
export async function readPage(
  tx: ReadTx,
  size: number,
  keysSql: string,
  params: readonly SqlValue[],
  readOne: (id: string) => Promise<StoredDocument | undefined>,
): Promise<Page> {
  const keys = await tx.all(KEY_ROW, keysSql, params);
  const documents: StoredDocument[] = [];
  let chars = 0;
  let values = 0;
  let last: Key | undefined;
  for (const key of keys.slice(0, size)) {
    chars += key.size;
    if (last !== undefined && chars > MAX_PAGE_CHARS) break;
    const document = await readOne(key.id);
    if (document !== undefined) {
      values += countJsonValues(Buffer.from(document.document), MAX_PAGE_VALUES);
      if (last !== undefined && values > MAX_PAGE_VALUES) break;
      documents.push(document);
    }
    last = key;
  }
  const more = last !== undefined && keys.at(-1) !== last;
  return { documents, next: more && last !== undefined ? [last.time, last.id] : undefined };
}

/**
 * Returns the time and id of a page position; undefined if the position is undefined or malformed. The list then begins
 * at its start.
 */
export function positionParams(position: PagePosition | undefined): [number, string] | undefined {
  if (position === undefined) return undefined;
  const [time, id] = position;
  return typeof time === "number" && typeof id === "string" ? [time, id] : undefined;
}
