/**
 * Translates a statement to Postgres. Statements use the common subset of both databases, with four exceptions: `?`
 * placeholders, names with capitals after AS, CROSS JOIN with ON (which fixes SQLite's join order), and SQLite's JSON
 * functions. Every schema defines those functions ({@link FUNCTIONS}).
 *
 * @param sql with `?` placeholders
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
 * Defines SQLite functions that the statements use: array members in order, a value in a JSON text, a position in a
 * text.
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

/** Applies `change` to the parts outside quoted texts, quoted names and comments. */
function mapOutsideLiterals(sql: string, change: (code: string) => string): string {
  return sql
    .split(/('(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*)/)
    .map((part, i) => (i % 2 === 0 ? change(part) : part))
    .join("");
}
