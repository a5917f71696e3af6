import {
  type DescMessage,
  type DescMethod,
  type Message,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import {
  DeputeError,
  decodePageToken,
  ErrorReason,
  encodePageToken,
  type PageFilters,
  pageSize,
} from "@depute/core";

/**
 * Maximum size of a response, in bytes of protobuf's binary form. Stock gRPC clients read up to 4 MiB, and headers and
 * frames use a part of this limit.
 */
export const MAX_ANSWER_BYTES = 3 * 1024 * 1024;

/** Bytes that a response reserves for its fields beside the list, such as a page token or a revision. */
const BESIDE_BYTES = 16 * 1024;

/** Bytes for the tag and the length of one element. */
const ELEMENT_BYTES = 6;

/** Counts the bytes that remain for further elements of one response. */
export class AnswerRoom {
  #remainingBytes: number;
  #isEmpty = true;

  /** @param maxBytes maximum bytes of all elements together */
  constructor(maxBytes: number = MAX_ANSWER_BYTES - BESIDE_BYTES) {
    this.#remainingBytes = maxBytes;
  }

  /**
   * Reserves room for one more element. The first element always fits, even if it is too large, because a page needs at
   * least one element.
   *
   * @param bytes the size of the element in protobuf's binary form
   * @returns whether the element fits; after false, every later call returns false too
   */
  takes(bytes: number): boolean {
    this.#remainingBytes -= bytes + ELEMENT_BYTES;
    const fits = this.#remainingBytes >= 0 || this.#isEmpty;
    this.#isEmpty = false;
    return fits;
  }
}

/** The elements of one response, and whether more elements follow on the next page. */
export interface CutPage<Item> {
  readonly items: Item[];
  readonly more: boolean;
}

/**
 * Returns the first elements of `found`: at most `size`, and only as many as fit into one response. The next page
 * starts after the last of these elements.
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

/** One page of a list, and the page token that requests the next page. */
export interface ListPage<Item> {
  readonly items: Item[];
  /** The page token that requests the next page; empty on the last page. */
  readonly nextPageToken: string;
}

/**
 * Returns one page of a short list that is held in memory.
 *
 * @param request the fields of the list request
 * @param filters the other criteria of the request; a page token is valid only with the filters that it was issued for
 * @param keyOf returns the key of an element, which is unique in the list
 * @param bytesOf returns the size of an element in protobuf's binary form, in bytes, e.g. by the function
 * {@link bytesOf} of this file
 * @throws DeputeError PAGE_TOKEN_INVALID
 */
export function pageOfList<Item>(
  all: readonly Item[],
  request: { readonly pageSize: number; readonly pageToken: string },
  filters: PageFilters,
  keyOf: (item: Item) => string,
  bytesOf: (item: Item) => number,
): ListPage<Item> {
  const [place, key] = decodePageToken(request.pageToken, filters) ?? [0, ""];
  const last = all.findIndex((item) => keyOf(item) === key);
  // If the element that the page token names was removed, the next element now has the index of the removed element.
  const start = last === -1 ? Number(place) : last + 1;
  const { items, more } = cutPage(all.slice(start), pageSize(request.pageSize), bytesOf);
  const end = items.at(-1);
  const isMore = more && end !== undefined;
  return {
    items,
    nextPageToken: isMore ? encodePageToken([start + items.length - 1, keyOf(end)], filters) : "",
  };
}

/** Returns the size of a message in protobuf's binary form, in bytes. */
export function bytesOf<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): number {
  return toBinary(schema, message).length;
}

/**
 * Refuses a response that has several elements and is too long for stock clients. Most methods have cut their lists
 * with {@link cutPage}; this check is for all other methods.
 *
 * @param bytes the size of the whole response in protobuf's binary form
 * @throws DeputeError LIMIT_EXCEEDED (`answer_bytes`)
 */
export function checkAnswer(method: DescMethod, message: Message, bytes: number): void {
  if (bytes <= MAX_ANSWER_BYTES || countElements(method.output, message) < 2) return;
  throw new DeputeError(
    ErrorReason.LIMIT_EXCEEDED,
    `the response is larger than ${MAX_ANSWER_BYTES} bytes; request fewer elements by a smaller page size or a filter`,
    { metadata: { limit: "answer_bytes", max: String(MAX_ANSWER_BYTES) } },
  );
}

/** Counts the elements of the lists and maps in a message, without those in nested messages. */
export function countElements({ fields }: DescMessage, message: Message): number {
  const values = message as unknown as Readonly<Record<string, unknown>>;
  let count = 0;
  for (const { fieldKind, localName } of fields) {
    if (fieldKind === "list") count += (values[localName] as readonly unknown[]).length;
    if (fieldKind === "map") count += Object.keys(values[localName] as object).length;
  }
  return count;
}
