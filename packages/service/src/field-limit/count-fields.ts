import type { DescField, DescMessage } from "@bufbuild/protobuf";

/** How deep messages are looked into; what is nested deeper is counted as too much. */
const MAX_DEPTH = 100;

const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
const FIXED32 = 5;

/**
 * Whether a message in protobuf's binary form holds more fields than `max`, those of messages within it counted. Reads
 * nothing but tags and lengths, and stops at the first that is too much: a small part of what decoding takes. What is no
 * message is read as far as the decoder reads it before it refuses it: a length that leads out of the message around it,
 * as far as there are bytes.
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
          // A group's tags are counted where they stand; nothing of ours has one.
          break;
      }
    }
    return this.#count;
  }

  #within(field: DescField | undefined, begin: number, end: number, depth: number): void {
    if (field === undefined) return;
    if (field.fieldKind === "map") this.#entry(field.message, begin, end, depth);
    else if (field.message !== undefined) this.walk(field.message, begin, end, depth + 1);
    // Numbers in a row have no tags; each has a byte at least.
    else if (field.fieldKind === "list" && isPackable(field)) this.#count += end - begin;
  }

  /** An entry of a map is a message of a key, 1, and a value, 2. */
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

  /** The lower 32 bits of a varint, as a tag or a length has them. */
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
const known = new WeakMap<DescMessage, ReadonlyMap<number, DescField>>();

function fieldsOf(desc: DescMessage): ReadonlyMap<number, DescField> {
  let fields = known.get(desc);
  if (fields === undefined) {
    fields = new Map(desc.fields.map((field) => [field.number, field]));
    known.set(desc, fields);
  }
  return fields;
}

function isPackable(field: DescField & { fieldKind: "list" }): boolean {
  return field.listKind === "enum" || (field.listKind === "scalar" && !TEXTS.has(field.scalar));
}

/** ScalarType.STRING and BYTES. */
const TEXTS = new Set([9, 12]);

/** Fields that a value of a JSON text stands for, about: itself and the message that holds it. */
const FIELDS_OF_VALUE = 2;

/** The same of a message in its JSON form. */
export function hasMoreJsonValues(bytes: Uint8Array, max: number): boolean {
  const most = Math.floor(max / FIELDS_OF_VALUE);
  return countJsonValues(bytes, most) > most;
}

/**
 * How many values and members a JSON text has, about: by the signs between them, those within texts passed over.
 *
 * @returns `max + 1` for more than `max`
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
