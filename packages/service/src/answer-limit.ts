import type { DescMessage, DescMethod, Message, MessageShape } from "@bufbuild/protobuf";
import { DeputeError, ErrorReason } from "@depute/core";
import { encode } from "@depute/core/encode";

/** Bytes of an answer in protobuf's binary form: stock gRPC clients read 4 MiB, and headers and frames need room. */
export const MAX_ANSWER_BYTES = 3 * 1024 * 1024;

/** Bytes that an answer keeps for what stands beside its list: a page token, a revision. */
const BESIDE_BYTES = 16 * 1024;

/** Bytes of an element's tag and length. */
const ELEMENT_BYTES = 6;

/** Room for the elements of one answer. */
export class AnswerRoom {
  #left: number;
  #isEmpty = true;

  /** @param maxBytes bytes for all elements together */
  constructor(maxBytes: number = MAX_ANSWER_BYTES - BESIDE_BYTES) {
    this.#left = maxBytes;
  }

  /**
   * Takes room for one more element. The first element always fits, because no smaller answer could hold it.
   *
   * @param bytes of the element in protobuf's binary form
   * @returns false for one that belongs to the next answer; nothing fits from then on
   */
  takes(bytes: number): boolean {
    this.#left -= bytes + ELEMENT_BYTES;
    const fits = this.#left >= 0 || this.#isEmpty;
    this.#isEmpty = false;
    return fits;
  }
}

/** Elements of one answer, and whether more follow. */
export interface CutPage<Item> {
  readonly items: Item[];
  readonly more: boolean;
}

/**
 * The elements of one answer, from the first: at most `size`, and no more bytes than an answer may have. Callers get the
 * rest with the page token, or the cursor, behind the last element.
 *
 * @param found the elements in their order, one more than `size` where there is more
 * @param bytesOf bytes of an element in protobuf's binary form, see {@link bytesOf}
 */
export function cutPage<Item>(
  found: readonly Item[],
  size: number,
  bytesOf: (item: Item) => number,
): CutPage<Item> {
  const room = new AnswerRoom();
  const items: Item[] = [];
  for (const item of found) {
    if (items.length >= size || !room.takes(bytesOf(item))) return { items, more: true };
    items.push(item);
  }
  return { items, more: false };
}

/** Bytes of a message in protobuf's binary form. */
export function bytesOf<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): number {
  return encode(schema, message).length;
}

/**
 * Refuses an answer of several elements that stock clients could not read. It is the last line: methods cut their lists
 * with {@link cutPage} before.
 *
 * @param bytes of the whole answer in protobuf's binary form
 * @throws DeputeError LIMIT_EXCEEDED (`answer_bytes`)
 */
export function checkAnswer(method: DescMethod, message: Message, bytes: number): void {
  if (bytes <= MAX_ANSWER_BYTES || countElements(method.output, message) < 2) return;
  throw new DeputeError(
    ErrorReason.LIMIT_EXCEEDED,
    `the answer is larger than ${MAX_ANSWER_BYTES} bytes; ask for fewer elements, by page size or by filter`,
    { metadata: { limit: "answer_bytes", max: String(MAX_ANSWER_BYTES) } },
  );
}

/** Elements of the lists that a message holds itself. */
export function countElements({ fields }: DescMessage, message: Message): number {
  const values = message as unknown as Readonly<Record<string, unknown>>;
  let count = 0;
  for (const { fieldKind, localName } of fields) {
    if (fieldKind === "list") count += (values[localName] as readonly unknown[]).length;
    if (fieldKind === "map") count += Object.keys(values[localName] as object).length;
  }
  return count;
}
