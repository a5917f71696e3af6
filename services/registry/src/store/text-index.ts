import type { ReadTx, WriteTx } from "@depute/store";

/** The words of one capability, by the field that they stand in, and the keys that it is filtered by. */
export interface TextDocument {
  readonly id: string;
  readonly name: string;
  readonly category: string;
  readonly description: string;
  readonly keys: readonly string[];
}

/** Which capability was found. */
export interface TextMatch {
  readonly agentId: string;
  readonly id: string;
}

/** What free text finds: the best matches, and whether there were more. */
export interface TextMatches {
  readonly matches: readonly TextMatch[];
  readonly truncated: boolean;
}

/** Free text over capabilities. One implementation a database: SQLite has FTS5, Postgres its own full text. */
export interface TextIndex {
  /** Writes the documents of an agent, in place of those before. */
  replace(tx: WriteTx, agentId: string, documents: readonly TextDocument[]): Promise<void>;
  /**
   * Documents in which a word begins with one of `words` and which have all of `keys`: the best `limit` of them, in no
   * particular order.
   *
   * @param words letters and digits only, at least one
   */
  search(tx: ReadTx, words: readonly string[], keys: readonly string[], limit: number): Promise<TextMatches>;
}

/** Documents that are ranked for one query: a word that is in all of them must not hold up everybody else. */
const MAX_RANKED = 10_000;

/** BM25 with a word of the name over one of the category over one of the description, as in the rules' own score. */
const RANK = "bm25(capability_text, 10.0, 8.0, 6.0, 0.0)";

export const fts5: TextIndex = {
  async replace(tx, agentId, documents) {
    const old = await tx.all<{ doc: number }>("SELECT doc FROM capability_docs WHERE agent_id = ?", [
      agentId,
    ]);
    for (const { doc } of old) await tx.run("DELETE FROM capability_text WHERE rowid = ?", [doc]);
    if (old.length > 0) await tx.run("DELETE FROM capability_docs WHERE agent_id = ?", [agentId]);
    for (const { id, name, category, description, keys } of documents) {
      const row = await tx.get<{ doc: number }>(
        "INSERT INTO capability_docs (agent_id, id) VALUES (?, ?) RETURNING doc",
        [agentId, id],
      );
      await tx.run(
        "INSERT INTO capability_text (rowid, name, category, description, keys) VALUES (?, ?, ?, ?, ?)",
        [row?.doc ?? null, name, category, description, keys.map(keyToken).join(" ")],
      );
    }
  },

  async search(tx, words, keys, limit) {
    const anyWord = words.map((word) => `"${word}" *`).join(" OR ");
    const allKeys = keys.map((key) => ` AND keys : ${keyToken(key)}`).join("");
    const query = `({name category description} : (${anyWord}))${allKeys}`;
    const rows = await tx.all<{ agent_id: string; id: string; found: number }>(
      `SELECT d.agent_id, d.id, r.found
       FROM (SELECT doc, COUNT(*) OVER () AS found, place
         FROM (SELECT rowid AS doc, ${RANK} AS place FROM capability_text WHERE capability_text MATCH ? LIMIT ?)
         ORDER BY place LIMIT ?) r
       JOIN capability_docs d ON d.doc = r.doc`,
      [query, MAX_RANKED, limit],
    );
    return {
      matches: rows.map((row) => ({ agentId: row.agent_id, id: row.id })),
      truncated: (rows[0]?.found ?? 0) > limit,
    };
  },
};

/** A key as one word of the index, whatever it holds. */
function keyToken(key: string): string {
  return `x${Buffer.from(key).toString("hex")}`;
}
