import { types } from "pg";
import type { SqlValue } from "../store.ts";

const { builtins } = types;

/** What node-postgres sends: whole numbers by their digits, so that no column has to guess. */
export function toPostgresValue(value: SqlValue): string | Buffer | null {
  if (value === null || typeof value === "string") return value;
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError(`${value} is no SQL value`);
  return String(value);
}

/** How columns are read: as SqlValue says, so whole numbers are numbers where that is exact, and there are no booleans. */
export const valueTypes = {
  getTypeParser(oid: number, format?: "text" | "binary"): (value: never) => unknown {
    return PARSERS.get(oid) ?? types.getTypeParser(oid, format as "text");
  },
};

const PARSERS = new Map<number, (text: never) => SqlValue>([
  [builtins.INT8, whole],
  [builtins.NUMERIC, numeric],
  [builtins.BOOL, (text: string) => (text === "t" ? 1 : 0)],
  [builtins.BYTEA, bytes],
]);

function whole(text: string): number | bigint {
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : BigInt(text);
}

/** What sum() makes of whole numbers is whole. */
function numeric(text: string): number | bigint {
  return /^-?\d+$/.test(text) ? whole(text) : Number(text);
}

/** `\x` and hexadecimal digits, the only form in which Postgres answers since 9.0. */
function bytes(text: string): Uint8Array {
  const buffer = Buffer.from(text.slice(2), "hex");
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}
