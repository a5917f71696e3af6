import { types } from "pg";
import type { SqlValue } from "../store.ts";

const { builtins } = types;

/**
 * Converts a parameter for node-postgres. An integer is sent as decimal digits, and Postgres infers its type
 * from the statement.
 */
export function toPostgresValue(value: SqlValue): string | Buffer | null {
  if (value === null || typeof value === "string") return value;
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  if (typeof value === "number" && !Number.isFinite(value))
    throw new TypeError(`${value} is not a SQL value; use text, bytes, null or a finite number`);
  return String(value);
}

/**
 * Parsers of column values. Each parser returns a type of SqlValue. An integer becomes a number if the number is exact.
 * A Boolean becomes 1 or 0.
 */
export const valueTypes = {
  getTypeParser(oid: number, format?: "text" | "binary"): (value: never) => unknown {
    return PARSERS.get(oid) ?? types.getTypeParser(oid, format as "text");
  },
};

const PARSERS = new Map<number, (text: never) => SqlValue>([
  [builtins.INT8, parseInteger],
  [builtins.NUMERIC, numeric],
  [builtins.BOOL, (text: string) => (text === "t" ? 1 : 0)],
  [builtins.BYTEA, bytes],
]);

function parseInteger(text: string): number | bigint {
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : BigInt(text);
}

/** Parses a `numeric`, the type that Postgres gives to a sum of integers. */
function numeric(text: string): number | bigint {
  return /^-?\d+$/.test(text) ? parseInteger(text) : Number(text);
}

/** Parses bytes in the form `\x` with hexadecimal digits, the default form of Postgres since 9.0. */
function bytes(text: string): Uint8Array {
  const buffer = Buffer.from(text.slice(2), "hex");
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}
