/**
 * A statement as Postgres takes it. The statements of the code keep to what both databases understand; what is written
 * otherwise is three small things: placeholders, names with capitals after AS, and CROSS JOIN where SQLite has an order in mind.
 *
 * @param sql with `?` placeholders
 */
export function toPostgres(sql: string): string {
  let count = 0;
  return mapOutsideLiterals(sql, (code) =>
    code
      .replace(/\?/g, () => `$${++count}`)
      .replace(/\b(AS\s+)([a-z]+[A-Z]\w*)/gi, (whole, as: string, name: string) =>
        /[A-Z]/.test(name) ? `${as}"${name}"` : whole,
      )
      .replace(/\bCROSS JOIN(\s+\w+(?:\s+\w+)?\s+ON\b)/g, "JOIN$1"),
  );
}

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
