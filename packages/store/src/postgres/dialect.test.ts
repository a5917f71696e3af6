import { describe, expect, it } from "vitest";
import { toPostgres, toPostgresSchema } from "./dialect.ts";

describe("a statement", () => {
  it.each([
    ["SELECT a FROM t WHERE b = ? AND c = ?", "SELECT a FROM t WHERE b = $1 AND c = $2"],
    ["SELECT '?', \"?\" FROM t WHERE a = ? -- why?", "SELECT '?', \"?\" FROM t WHERE a = $1 -- why?"],
    ["SELECT 'it''s ?' || ?", "SELECT 'it''s ?' || $1"],
    ["SELECT a AS agentId, b AS plain FROM t", 'SELECT a AS "agentId", b AS plain FROM t'],
    ["SELECT count(*) AS n FROM t", "SELECT count(*) AS n FROM t"],
    ["SELECT value FROM json_each(?)", "SELECT value FROM json_list($1)"],
    ["FROM a CROSS JOIN b ON b.x = a.x", "FROM a JOIN b ON b.x = a.x"],
    ["FROM w CROSS JOIN offers f ON f.x = w.x", "FROM w JOIN offers f ON f.x = w.x"],
    ["FROM a CROSS JOIN b c WHERE c.x = a.x", "FROM a CROSS JOIN b c WHERE c.x = a.x"],
  ])("%s", (sql, expected) => {
    expect(toPostgres(sql)).toBe(expected);
  });
});

describe("a schema", () => {
  it.each([
    ["CREATE TABLE t (a INTEGER, b BLOB) STRICT", "CREATE TABLE t (a BIGINT, b BYTEA)"],
    ["CREATE TABLE t (a BIGINT PRIMARY KEY) WITHOUT ROWID, STRICT", "CREATE TABLE t (a BIGINT PRIMARY KEY)"],
    [
      "CREATE TABLE t (a TEXT DEFAULT 'TEXT') -- TEXT",
      "CREATE TABLE t (a TEXT COLLATE \"C\" DEFAULT 'TEXT') -- TEXT",
    ],
  ])("%s", (sql, expected) => {
    expect(toPostgresSchema(sql)).toBe(expected);
  });
});
