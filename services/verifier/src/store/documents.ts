import type { PagePosition } from "@depute/core";
import { countJsonValues } from "@depute/service";
import { integer, type ReadTx, type RowOf, row, type SqlValue, text } from "@depute/store";

/** A signed document as it is kept: what was signed, in canonical JSON, is the truth. */
export interface StoredDocument {
  id: string;
  /** base64url of the digest that its signature covers: what makes two documents the same one. */
  digest: string;
  /** Canonical JSON, signature included. */
  document: string;
  /** When it was stored, in milliseconds since the Unix epoch. */
  storeTime: number;
}

export const STORED_DOCUMENT_ROW = row<StoredDocument>({
  id: text,
  digest: text,
  document: text,
  storeTime: integer,
});

export interface Page {
  documents: StoredDocument[];
  /** Where the next page begins; undefined on the last one. */
  next: PagePosition | undefined;
}

/** Characters of documents on a page: it is written in a few milliseconds, and gRPC clients accept 4 MiB by default. */
export const MAX_PAGE_CHARS = 1024 * 1024;

/** JSON values and members on a page, so that it is written in a few milliseconds. */
export const MAX_PAGE_VALUES = 16_384;

const KEY_ROW = row({ id: text, time: integer, size: integer });
type Key = RowOf<typeof KEY_ROW>;

/**
 * Reads a page: the keys first, then as many of the documents as fit, at least one.
 *
 * @param keysSql selects id, time, size in the list's order, `size + 1` of them
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

/** The time and id of a page position; the types were checked when its token was read. */
export function positionParams(position: PagePosition | undefined): [number, string] | undefined {
  if (position === undefined) return undefined;
  const [time, id] = position;
  return typeof time === "number" && typeof id === "string" ? [time, id] : undefined;
}
