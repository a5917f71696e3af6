import type { Json } from "./stranger.ts";

/**
 * Encodes a document in MessagePack. The encoder is written from the specification and implements only the
 * types that documents need. The encoder shares no code with the platform's codec.
 */

export function pack(value: Json): Buffer {
  if (value === null) return Buffer.of(0xc0);
  if (typeof value === "boolean") return Buffer.of(value ? 0xc3 : 0xc2);
  if (typeof value === "number") {
    if (Number.isInteger(value) && value >= 0 && value < 0x80) return Buffer.of(value);
    const bytes = Buffer.alloc(9, 0xcb);
    bytes.writeDoubleBE(value, 1);
    return bytes;
  }
  if (typeof value === "string")
    return Buffer.concat([sized(0xdb, Buffer.byteLength(value)), Buffer.from(value)]);
  if (Array.isArray(value)) return Buffer.concat([sized(0xdd, value.length), ...value.map(pack)]);
  const members = Object.entries(value);
  return Buffer.concat([
    sized(0xdf, members.length),
    ...members.flatMap(([name, member]) => [pack(name), pack(member)]),
  ]);
}

function sized(head: number, size: number): Buffer {
  const bytes = Buffer.alloc(5, head);
  bytes.writeUInt32BE(size, 1);
  return bytes;
}

export function unpack(bytes: Buffer): Json {
  let at = 0;
  const take = (width: number): number => {
    at += width;
    return bytes.readUIntBE(at - width, width);
  };
  const text = (length: number): string => {
    at += length;
    return bytes.toString("utf8", at - length, at);
  };
  const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);
  const map = (count: number): Json => Object.fromEntries(times(count, () => [String(next()), next()]));
  function next(): Json {
    const head = take(1);
    if (head < 0x80) return head;
    if (head < 0x90) return map(head & 0x0f);
    if (head < 0xa0) return times(head & 0x0f, next);
    if (head < 0xc0) return text(head & 0x1f);
    if (head >= 0xe0) return head - 0x100;
    switch (head) {
      case 0xc0:
        return null;
      case 0xc2:
      case 0xc3:
        return head === 0xc3;
      case 0xcb:
        at += 8;
        return bytes.readDoubleBE(at - 8);
      case 0xcc:
        return take(1);
      case 0xcd:
        return take(2);
      case 0xce:
        return take(4);
      case 0xcf:
        at += 8;
        return Number(bytes.readBigUInt64BE(at - 8));
      case 0xd9:
        return text(take(1));
      case 0xda:
        return text(take(2));
      case 0xdb:
        return text(take(4));
      case 0xdc:
        return times(take(2), next);
      case 0xdd:
        return times(take(4), next);
      case 0xde:
        return map(take(2));
      case 0xdf:
        return map(take(4));
      default:
        throw new Error(`no document has ${head.toString(16)}`);
    }
  }
  return next();
}
