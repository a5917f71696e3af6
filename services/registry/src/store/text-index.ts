import { integer, type ReadTx, row, text, type WriteTx } from "@depute/store";

const DOC_ROW = row({ doc: integer });
const DOC_AGENT_ID_ID_WORDS_ROW = row({ doc: integer, agent_id: text, id: text, words: text });

/** A capability in the index: the texts of its fields, and its search keys. */
export interface TextDocument {
  readonly id: string;
  readonly name: string;
  readonly category: string;
  readonly description: string;
  readonly keys: readonly string[];
}

/** A matching capability with its words. */
export interface TextMatch {
  readonly agentId: string;
  readonly id: string;
  /** The words in the form of `searchText`. */
  readonly words: string;
}

/** The matches of a search, and whether more exist. */
export interface TextMatches {
  readonly matches: readonly TextMatch[];
  readonly truncated: boolean;
}

/**
 * Free text search over capabilities, with one implementation for each database: FTS5 in SQLite, full text search in
 * Postgres.
 */
export interface TextIndex {
  /** Replaces the documents of an agent. */
  replace(tx: WriteTx, agentId: string, documents: readonly TextDocument[]): Promise<void>;
  /**
   * Finds at most `limit` documents, unordered, that have all of `keys` and a word that begins with one of `words`.
   * If more documents match, whole words take precedence over beginnings of words. Within each of these two groups,
   * documents with all words come first. Then come documents with one word in the name, the category or the
   * description, in this order.
   *
   * @param words letters and digits only, at least one
   */
  search(tx: ReadTx, words: readonly string[], keys: readonly string[], limit: number): Promise<TextMatches>;
  /**
   * Returns the documents after `after` that have all of `keys`, sorted by id, then by agent.
   *
   * @param keys at least one
   * @returns undefined if more than `max` documents have all keys, including documents before `after`
   */
  withKeys(
    tx: ReadTx,
    keys: readonly string[],
    after: DocumentPlace,
    max: number,
  ): Promise<readonly DocumentPlace[] | undefined>;
}

/** The position of a document: its capability's id and agent. */
export interface DocumentPlace {
  readonly id: string;
  readonly agentId: string;
}

/**
 * A row with a document's place. `isBehind` is 1 if the place is after the search's start, in the order of the
 * database.
 */
export const PLACED_ROW = row({ id: text, agentId: text, isBehind: integer });

export const PLACED_COLUMNS = `d.id AS id, d.agent_id AS agentId,
  CASE WHEN (d.id, d.agent_id) > (?, ?) THEN 1 ELSE 0 END AS isBehind`;

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
    const textMatches = new Map<number, TextMatch>();
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
        if (textMatches.size >= limit && !textMatches.has(doc)) truncated = true;
        else textMatches.set(doc, { agentId, id, words });
      }
      if (truncated) break;
    }
    return { matches: [...textMatches.values()], truncated };
  },

  async withKeys(tx, keys, after, max) {
    const rows = await tx.all(
      PLACED_ROW,
      `SELECT ${PLACED_COLUMNS}
       FROM (SELECT rowid AS doc FROM capability_text WHERE capability_text MATCH ? LIMIT ?) r
       CROSS JOIN capability_docs d
       WHERE d.doc = r.doc ORDER BY d.id, d.agent_id`,
      [after.id, after.agentId, keys.map((key) => `keys : ${keyToken(key)}`).join(" AND "), max + 1],
    );
    return rows.length > max ? undefined : rows.filter(({ isBehind }) => isBehind === 1);
  },
};

/**
 * Returns the queries in the order of their rank: all words before one word, names before descriptions. Does not use
 * FTS5's function bm25, which would rank every matching document in each query. Whole words come before prefixes,
 * because FTS5 streams the documents of a whole word up to the limit. For a prefix, FTS5 first collects all documents.
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

/** Encodes a key of any characters as a single word of the index. */
function keyToken(key: string): string {
  return `x${Buffer.from(key).toString("hex")}`;
}
