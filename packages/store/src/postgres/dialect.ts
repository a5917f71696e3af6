/**
 * Translates a statement to Postgres. Statements use the common subset of both databases. Only these constructs need a
 * translation: `?` placeholders, names with capitals after AS, CROSS JOIN with ON (which fixes SQLite's join order),
 * and `json_each`. The other functions of SQLite that statements use work unchanged, because every schema defines them
 * ({@link FUNCTIONS}).
 *
 * @param sql a statement with `?` placeholders
 */
export function toPostgres(sql: string): string {
  let count = 0;
  return mapOutsideLiterals(sql, (code) =>
    code
      .replace(/\bjson_each\(/g, "json_list(")
      .replace(/\?/g, () => `$${++count}`)
      .replace(/\b(AS\s+)([a-z]+[A-Z]\w*)/gi, (match, as: string, name: string) =>
        /[A-Z]/.test(name) ? `${as}"${name}"` : match,
      )
      .replace(/\bCROSS JOIN(\s+\w+(?:\s+\w+)?\s+ON\b)/g, "JOIN$1"),
  );
}

/**
 * Defines functions of SQLite that the statements use. `json_list` (for `json_each`) returns the members of an array,
 * in order. `json_extract` returns a value of a JSON text. `instr` returns the position of a text in another text.
 */
export const FUNCTIONS = `
CREATE OR REPLACE FUNCTION json_list(list TEXT) RETURNS TABLE (key BIGINT, value TEXT) LANGUAGE sql IMMUTABLE AS
  'SELECT place - 1, member FROM jsonb_array_elements_text(list::jsonb) WITH ORDINALITY AS of (member, place)';
CREATE OR REPLACE FUNCTION json_extract(document TEXT, path TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE AS
  'SELECT jsonb_path_query_first(document::jsonb, path::jsonpath) #>> ''{}''';
CREATE OR REPLACE FUNCTION instr(whole TEXT, part TEXT) RETURNS INT LANGUAGE sql IMMUTABLE AS
  'SELECT strpos(whole, part)';
`;

/** Translates SQLite's schema statements to Postgres: integers get 64 bits, and texts are compared byte by byte. */
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

/** Applies `change` to the parts of a statement outside quoted texts, quoted names and comments. */
function mapOutsideLiterals(sql: string, change: (code: string) => string): string {
  return sql
    .split(/('(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*)/)
    .map((part, i) => (i % 2 === 0 ? change(part) : part))
    .join("");
}
