import { AnswerRoom } from "@depute/service";

/** Maximum number of messages that one read returns, because each may be as large as a megabyte. */
const BATCH = 16;

/** Bytes that a response needs for each message in addition to its text: for the position, times and effect. */
const BESIDE_BYTES = 1024;

/** A page of a list of messages, and whether more messages follow. */
export interface MessagePage<Item> {
  readonly items: readonly Item[];
  readonly more: boolean;
}

/** Reads in batches until the page is full, by number of messages or by bytes. */
export async function readPage<Item extends { readonly position: number; readonly bytes: number }>(
  size: number,
  after: number,
  read: (after: number, limit: number) => Promise<readonly Item[]>,
): Promise<MessagePage<Item>> {
  const items: Item[] = [];
  const room = new AnswerRoom();
  for (let from = after; ; ) {
    const batch = await read(from, BATCH);
    for (const item of batch) {
      if (items.length === size || !room.takes(item.bytes + BESIDE_BYTES)) return { items, more: true };
      from = item.position;
      items.push(item);
    }
    if (batch.length < BATCH) return { items, more: false };
  }
}
