/**
 * A statement as Postgres takes it. The statements of the code keep to what both databases understand; what is written
 * otherwise is a few small things: placeholders, names with capitals after AS, CROSS JOIN where SQLite has an order in mind,
 * and SQLite's functions for lists in JSON, which every schema has under names of ours.
 *
 * @param sql with `?` placeholders
 */
export function toPostgres(sql: string): string {
  let count = 0;
  return mapOutsideLiterals(sql, (code) =>
    code
      .replace(/\bjson_each\(/g, "json_list(")
      .replace(/\?/g, () => `$${++count}`)
      .replace(/\b(AS\s+)([a-z]+[A-Z]\w*)/gi, (whole, as: string, name: string) =>
        /[A-Z]/.test(name) ? `${as}"${name}"` : whole,
      )
      .replace(/\bCROSS JOIN(\s+\w+(?:\s+\w+)?\s+ON\b)/g, "JOIN$1"),
  );
}

/** SQLite's functions that statements use: the members of an array in their order, a part of a JSON text, a place in a text. */
export const FUNCTIONS = `
CREATE OR REPLACE FUNCTION json_list(list TEXT) RETURNS TABLE (key BIGINT, value TEXT) LANGUAGE sql IMMUTABLE AS
  'SELECT place - 1, member FROM jsonb_array_elements_text(list::jsonb) WITH ORDINALITY AS of (member, place)';
CREATE OR REPLACE FUNCTION json_extract(document TEXT, path TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE AS
  'SELECT jsonb_path_query_first(document::jsonb, path::jsonpath) #>> ''{}''';
CREATE OR REPLACE FUNCTION instr(whole TEXT, part TEXT) RETURNS INT LANGUAGE sql IMMUTABLE AS
  'SELECT strpos(whole, part)';
`;

/** Statements of a schema: whole numbers have 64 bits, and texts are compared by their bytes, as everywhere in Depute. */
export function toPostgresSchema(sql: string): string {
  return mapOutsideLiterals(sql, (code) =>
    code
      .replace(/\bINTEGER\b/g, "BIGINT")
      .replace(/\bBLOB\b/g, "BYTEA")
      .replace(/\bREAL\b/g, "DOUBLE PRECISION")
      .replace(/\bTEXT\b/g, 'TEXT COLLATE "C"')
      .replace(/\)\s*(?:STRICT|WITHOUT ROWID)(?:\s*,\s*(?:STRICT|WITHOUT ROWID))?/g, ")"),
  );
}

/** Applies `change` to what stands outside of quoted texts, quoted names and comments. */
function mapOutsideLiterals(sql: string, change: (code: string) => string): string {
  return sql
    .split(/('(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*)/)
    .map((part, i) => (i % 2 === 0 ? change(part) : part))
    .join("");
}
