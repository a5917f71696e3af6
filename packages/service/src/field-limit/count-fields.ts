import type { DescField, DescMessage } from "@bufbuild/protobuf";

/** Maximum depth of inspected messages. A deeper message counts as too many fields. */
const MAX_DEPTH = 100;

const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
const FIXED32 = 5;

/**
 * Whether a message in protobuf's binary form has more fields than `max`, including the fields of nested messages. The
 * check reads only tags and lengths, and stops at the first field above `max`, so it costs little compared with
 * decoding. It reads invalid bytes like the decoder: a length beyond the enclosing message counts up to the last byte.
 */
export function hasMoreFields(desc: DescMessage, bytes: Uint8Array, max: number): boolean {
  return new Counter(bytes, max).walk(desc, 0, bytes.length, 0) > max;
}

class Counter {
  readonly #bytes: Uint8Array;
  readonly #max: number;
  #at = 0;
  #count = 0;

  constructor(bytes: Uint8Array, max: number) {
    this.#bytes = bytes;
    this.#max = max;
  }

  walk(desc: DescMessage | undefined, from: number, end: number, depth: number): number {
    if (depth > MAX_DEPTH) return this.#stop();
    const fields = desc === undefined ? NONE : fieldsOf(desc);
    for (this.#at = from; this.#at < end && this.#count <= this.#max; ) {
      const tag = this.#varint();
      this.#count += 1;
      switch (tag & 7) {
        case VARINT:
          this.#varint();
          break;
        case FIXED64:
          this.#at += 8;
          break;
        case FIXED32:
          this.#at += 4;
          break;
        case LENGTH: {
          const length = this.#varint();
          const begin = this.#at;
          const next = Math.min(begin + length, this.#bytes.length);
          this.#within(fields.get(tag >>> 3), begin, next, depth);
          this.#at = next;
          break;
        }
        default:
          // Wire types 3 and 4 begin and end a group. The tag is already counted, and the loop counts the fields inside
          // the group next. Depute's contracts have no groups.
          break;
      }
    }
    return this.#count;
  }

  #within(field: DescField | undefined, begin: number, end: number, depth: number): void {
    if (field === undefined) return;
    if (field.fieldKind === "map") this.#entry(field.message, begin, end, depth);
    else if (field.message !== undefined) this.walk(field.message, begin, end, depth + 1);
    // Packed numbers have no tags, so their bytes are counted instead. Each number has at least one byte.
    else if (field.fieldKind === "list" && isPackable(field)) this.#count += end - begin;
  }

  /** Counts the entry of a map: a message with the key as field 1 and the value as field 2. */
  #entry(value: DescMessage | undefined, begin: number, end: number, depth: number): void {
    for (let at = begin; at < end && this.#count <= this.#max; ) {
      this.#at = at;
      const tag = this.#varint();
      this.#count += 1;
      if ((tag & 7) !== LENGTH) return;
      const length = this.#varint();
      at = Math.min(this.#at + length, this.#bytes.length);
      if (tag >>> 3 === 2 && value !== undefined) this.walk(value, this.#at, at, depth + 1);
    }
  }

  #stop(): number {
    this.#count = this.#max + 1;
    return this.#count;
  }

  /** Reads a varint, and returns its lower 32 bits, which are enough for a tag or a length. */
  #varint(): number {
    let result = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) return result >>> 0;
      if (shift < 32) result |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    return result >>> 0;
  }
}

const NONE: ReadonlyMap<number, DescField> = new Map();
const fieldsByType = new WeakMap<DescMessage, ReadonlyMap<number, DescField>>();

function fieldsOf(desc: DescMessage): ReadonlyMap<number, DescField> {
  let fields = fieldsByType.get(desc);
  if (fields === undefined) {
    fields = new Map(desc.fields.map((field) => [field.number, field]));
    fieldsByType.set(desc, fields);
  }
  return fields;
}

function isPackable(field: DescField & { fieldKind: "list" }): boolean {
  return field.listKind === "enum" || (field.listKind === "scalar" && !TEXTS.has(field.scalar));
}

/** The numbers of the scalar types STRING and BYTES. */
const TEXTS = new Set([9, 12]);

/**
 * Approximate number of protobuf fields for one JSON value: one for the value, and one for the message that contains
 * it.
 */
const FIELDS_OF_VALUE = 2;

/** Whether a message in JSON form has more fields than `max`, by an approximate count. */
export function hasMoreJsonValues(bytes: Uint8Array, max: number): boolean {
  const most = Math.floor(max / FIELDS_OF_VALUE);
  return countJsonValues(bytes, most) > most;
}

/**
 * Counts the values and members of a JSON text approximately, by the punctuation outside strings.
 *
 * @returns the count; `max + 1` if there are more than `max`
 */
export function countJsonValues(bytes: Uint8Array, max: number): number {
  let count = 0;
  let inText = false;
  for (let at = 0; at < bytes.length && count <= max; at++) {
    const byte = bytes[at];
    if (inText) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) inText = false;
    } else if (byte === QUOTE) inText = true;
    else if (byte === COMMA || byte === COLON || byte === BRACKET || byte === BRACE) count += 1;
  }
  return count;
}

const [QUOTE, BACKSLASH, COMMA, COLON, BRACKET, BRACE] = Buffer.from('"\\,:[{');
