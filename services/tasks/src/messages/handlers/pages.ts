import { AnswerRoom } from "@depute/service";

/** Maximum number of messages that one read returns. Each message may take up to a megabyte. */
const BATCH = 16;

/** Maximum bytes in a response that a message adds to its stored form: position, times and effect. */
const BESIDE_BYTES = 1024;

/** A page of a list of messages, and whether more messages follow. */
export interface MessagePage<Item> {
  readonly items: readonly Item[];
  readonly more: boolean;
}

/** Reads in batches until the page has `size` messages, the response has no room for more bytes, or the list ends. */
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
