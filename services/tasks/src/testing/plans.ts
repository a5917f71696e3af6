import { type Migrations, openStore, partsOf, type ReadTx, type SqlValue } from "@depute/store";

/** How SQLite carries out the statements of a query, in their order. The tables are those of the migrations, and empty. */
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
        all: async (...statement) => {
          const { sql, params } = partsOf(statement);
          statements.push([sql, params]);
          return [];
        },
        get: async (...statement) => {
          const { sql, params } = partsOf(statement);
          statements.push([sql, params]);
          return undefined;
        },
      });
      const details: string[] = [];
      for (const [sql, params] of statements) {
        const plan = await tx.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, params);
        details.push(...plan.map(({ detail }) => detail));
      }
      return details;
    });
  } finally {
    await store.close();
  }
}
