import { integer, type ReadTx, row, text, type WriteTx } from "@depute/store";

const DOC_ROW = row({ doc: integer });
const DOC_AGENT_ID_ID_WORDS_ROW = row({ doc: integer, agent_id: text, id: text, words: text });

/** The words of one capability, by the field that they stand in, and the keys that it is filtered by. */
export interface TextDocument {
  readonly id: string;
  readonly name: string;
  readonly category: string;
  readonly description: string;
  readonly keys: readonly string[];
}

/** Which capability was found, and its words. */
export interface TextMatch {
  readonly agentId: string;
  readonly id: string;
  /** As `searchText` writes them. */
  readonly words: string;
}

/** What free text finds, and whether there was more. */
export interface TextMatches {
  readonly found: readonly TextMatch[];
  readonly truncated: boolean;
}

/** Free text over capabilities. One implementation a database: SQLite has FTS5, Postgres its own full text. */
export interface TextIndex {
  /** Writes the documents of an agent, in place of those before. */
  replace(tx: WriteTx, agentId: string, documents: readonly TextDocument[]): Promise<void>;
  /**
   * Documents in which a word begins with one of `words` and which have all of `keys`: `limit` of them, in no particular
   * order. Those with whole words come first, and of these those with all of them, then those with one in the name, the
   * category, the description.
   *
   * @param words letters and digits only, at least one
   */
  search(tx: ReadTx, words: readonly string[], keys: readonly string[], limit: number): Promise<TextMatches>;
}

export const fts5: TextIndex = {
  async replace(tx, agentId, documents) {
    const old = await tx.all(DOC_ROW, "SELECT doc FROM capability_docs WHERE agent_id = ?", [agentId]);
    for (const { doc } of old) await tx.run("DELETE FROM capability_text WHERE rowid = ?", [doc]);
    if (old.length > 0) await tx.run("DELETE FROM capability_docs WHERE agent_id = ?", [agentId]);
    for (const { id, name, category, description, keys } of documents) {
      const row = await tx.get(
        DOC_ROW,
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
    const allKeys = keys.map((key) => ` AND keys : ${keyToken(key)}`).join("");
    const found = new Map<number, TextMatch>();
    let truncated = false;
    for (const query of queriesFor(words)) {
      const rows = await tx.all(
        DOC_AGENT_ID_ID_WORDS_ROW,
        `SELECT d.doc, d.agent_id, d.id, c.words
         FROM (SELECT rowid AS doc FROM capability_text WHERE capability_text MATCH ? LIMIT ?) r
         CROSS JOIN capability_docs d CROSS JOIN capabilities c
         WHERE d.doc = r.doc AND c.agent_id = d.agent_id AND c.id = d.id`,
        [query + allKeys, limit + 1],
      );
      for (const { doc, agent_id: agentId, id, words } of rows) {
        if (found.size >= limit && !found.has(doc)) truncated = true;
        else found.set(doc, { agentId, id, words });
      }
      if (truncated) break;
    }
    return { found: [...found.values()], truncated };
  },
};

/**
 * What has all words comes before what has one, and a name before a description; FTS5's own bm25 would count every document
 * that holds a word, for each question. Whole words come before beginnings of words: the documents of a whole word are read
 * as far as they are needed, those of a beginning are all gathered before.
 */
function queriesFor(words: readonly string[]): string[] {
  return ["", " *"].flatMap((beginning) => {
    const quoted = words.map((word) => `"${word}"${beginning}`);
    return [
      `({name category description} : (${quoted.join(" AND ")}))`,
      ...["name", "category", "description"].map((column) => `(${column} : (${quoted.join(" OR ")}))`),
    ];
  });
}

/** A key as one word of the index, whatever it holds. */
function keyToken(key: string): string {
  return `x${Buffer.from(key).toString("hex")}`;
}
