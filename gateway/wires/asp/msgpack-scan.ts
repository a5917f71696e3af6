/** The facts that the first byte of a MessagePack value states. (MessagePack specification "Formats") */
interface Head {
  /** Size in bytes of the length, or of the number, that follows the first byte. */
  readonly width: number;
  readonly kind: "value" | "text" | "list" | "map";
}

const HEADS: ReadonlyMap<number, Head> = new Map<number, Head>([
  ...[0xc0, 0xc2, 0xc3].map((byte): [number, Head] => [byte, { width: 0, kind: "value" }]),
  [0xca, { width: 4, kind: "value" }],
  [0xcb, { width: 8, kind: "value" }],
  ...[1, 2, 4, 8].flatMap((width, at): [number, Head][] => [
    [0xcc + at, { width, kind: "value" }],
    [0xd0 + at, { width, kind: "value" }],
  ]),
  ...[1, 2, 4].map((width, at): [number, Head] => [0xd9 + at, { width, kind: "text" }]),
  ...[2, 4].flatMap((width, at): [number, Head][] => [
    [0xdc + at, { width, kind: "list" }],
    [0xde + at, { width, kind: "map" }],
  ]),
]);

/**
 * Checks that bytes are one MessagePack value with only JSON's types. Returns the fault, or undefined if there is none.
 * The check takes one pass, without recursion or allocation. Each element takes at least one byte. So the check fails
 * immediately if a head announces more elements than there are remaining bytes.
 *
 * @param maxDepth maximum number of nested lists and maps
 */
// biome-ignore lint/complexity/noExcessiveCognitiveComplexity: one loop over the types of MessagePack, without a call for each value
export function faultIn(bytes: Uint8Array, maxDepth: number): string | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const open: number[] = [1];
  let at = 0;
  let claimed = 1;
  for (;;) {
    const innermost = open.at(-1);
    if (innermost === undefined) return at === bytes.length ? undefined : "bytes follow after its end";
    if (innermost === 0) {
      open.pop();
      continue;
    }
    open[open.length - 1] = innermost - 1;
    const first = bytes[at];
    if (first === undefined) return "it is incomplete";
    const { kind, width, length } = headOf(first);
    if (kind === undefined) return "it contains binary data or an extension type";
    if (at + 1 + width > bytes.length) return "it is incomplete";
    const size = length ?? sizeAt(view, at + 1, width);
    at += 1 + width;
    if (kind === "text") at += size;
    if (at > bytes.length) return "it is incomplete";
    if (kind === "list" || kind === "map") {
      const elements = kind === "map" ? 2 * size : size;
      claimed += elements;
      if (claimed > bytes.length) return "it is incomplete";
      if (open.length > maxDepth) return "it is nested too deeply";
      open.push(elements);
    }
  }
}

function headOf(first: number): { kind?: Head["kind"]; width: number; length?: number } {
  if (first < 0x80 || first >= 0xe0) return { kind: "value", width: 0 };
  if (first < 0x90) return { kind: "map", width: 0, length: first & 0x0f };
  if (first < 0xa0) return { kind: "list", width: 0, length: first & 0x0f };
  if (first < 0xc0) return { kind: "text", width: 0, length: first & 0x1f };
  return HEADS.get(first) ?? { width: 0 };
}

function sizeAt(view: DataView, at: number, width: number): number {
  if (width === 1) return view.getUint8(at);
  if (width === 2) return view.getUint16(at);
  return width === 4 ? view.getUint32(at) : 0;
}
