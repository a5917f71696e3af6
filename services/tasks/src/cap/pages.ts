/** Messages that are read at once; each may be as large as a megabyte. */
const BATCH = 16;

/** Bytes of messages that one answer holds, about; one message at least. */
const MAX_PAGE_BYTES = 2 * 1024 * 1024;

/** A part of a list of messages, and whether more follow. */
export interface MessagePage<Item> {
  readonly items: readonly Item[];
  readonly more: boolean;
}

/** Reads batch by batch until the page is full, in number or in bytes. */
export async function readPage<Item extends { readonly position: number; readonly bytes: number }>(
  size: number,
  after: number,
  read: (after: number, limit: number) => Promise<readonly Item[]>,
): Promise<MessagePage<Item>> {
  const items: Item[] = [];
  let bytes = 0;
  for (let from = after; ; ) {
    const batch = await read(from, BATCH);
    for (const item of batch) {
      if (items.length === size || (items.length > 0 && bytes + item.bytes > MAX_PAGE_BYTES)) {
        return { items, more: true };
      }
      bytes += item.bytes;
      from = item.position;
      items.push(item);
    }
    if (batch.length < BATCH) return { items, more: false };
  }
}
