import { type Migrations, openStore, type ReadTx, row, type SqlValue, text } from "@depute/store";

const DETAIL_ROW = row({ detail: text });

/**
 * Returns SQLite's query plans for the statements of a query, in order. The migrations create the tables, which are
 * empty.
 */
export async function plansOf(
  migrations: Migrations,
  query: (tx: ReadTx) => Promise<unknown>,
): Promise<string[]> {
  const store = await openStore({ memory: true, migrations, onError: () => {} });
  try {
    return await store.read(async (tx) => {
      const statements: [string, readonly SqlValue[]][] = [];
      await query({
        dialect: "sqlite",
        all: async (_row, sql, params = []) => {
          statements.push([sql, params]);
          return [];
        },
        get: async (_row, sql, params = []) => {
          statements.push([sql, params]);
          return undefined;
        },
      });
      const details: string[] = [];
      for (const [sql, params] of statements) {
        const plan = await tx.all(DETAIL_ROW, `EXPLAIN QUERY PLAN ${sql}`, params);
        details.push(...plan.map(({ detail }) => detail));
      }
      return details;
    });
  } finally {
    await store.close();
  }
}
