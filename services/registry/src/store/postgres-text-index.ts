import { row, text } from "@depute/store";
import {
  PLACED_COLUMNS,
  PLACED_ROW,
  type TextDocument,
  type TextIndex,
  type TextMatch,
} from "./text-index.ts";

const ROW = row({ agent_id: text, id: text, words: text });

/**
 * Free text search in Postgres. Its text vectors use no dictionary, so the search finds the same words as SQLite's
 * FTS5.
 */
export const postgresText: TextIndex = {
  async replace(tx, agentId, documents) {
    await tx.run("DELETE FROM capability_docs WHERE agent_id = ?", [agentId]);
    for (const document of documents) {
      await tx.run(
        `INSERT INTO capability_docs (agent_id, id, name, category, description, whole, keys)
         VALUES (?, ?, CAST(? AS tsvector), CAST(? AS tsvector), CAST(? AS tsvector), CAST(? AS tsvector),
           CAST(? AS tsvector))`,
        [agentId, document.id, ...vectorsOf(document)],
      );
    }
  },

  async search(tx, words, keys, limit) {
    const textMatches = new Map<string, TextMatch>();
    let truncated = false;
    for (const { column, query } of queriesFor(words)) {
      const hasKeys = keys.length > 0;
      const rows = await tx.all(
        ROW,
        `SELECT d.agent_id, d.id, c.words
         FROM (SELECT agent_id, id FROM capability_docs
           WHERE ${column} @@ CAST(? AS tsquery)${hasKeys ? " AND keys @@ CAST(? AS tsquery)" : ""} LIMIT ?) d
         JOIN capabilities c ON c.agent_id = d.agent_id AND c.id = d.id`,
        [query, ...(hasKeys ? [keysQuery(keys)] : []), limit + 1],
      );
      for (const { agent_id: agentId, id, words } of rows) {
        const place = JSON.stringify([agentId, id]);
        if (textMatches.size >= limit && !textMatches.has(place)) truncated = true;
        else textMatches.set(place, { agentId, id, words });
      }
      if (truncated) break;
    }
    return { matches: [...textMatches.values()], truncated };
  },

  async withKeys(tx, keys, after, max) {
    const rows = await tx.all(
      PLACED_ROW,
      `SELECT ${PLACED_COLUMNS}
       FROM (SELECT id, agent_id FROM capability_docs WHERE keys @@ CAST(? AS tsquery) LIMIT ?) d
       ORDER BY d.id, d.agent_id`,
      [after.id, after.agentId, keysQuery(keys), max + 1],
    );
    return rows.length > max ? undefined : rows.filter(({ isBehind }) => isBehind === 1);
  },
};

function vectorsOf({ name, category, description, keys }: TextDocument): string[] {
  const fields = [name, category, description, `${name} ${category} ${description}`].map(wordsOf);
  return [...fields, keys.map(keyToken)].map((words) => words.map(lexeme).join(" "));
}

/**
 * Returns the queries in the order of their rank. Queries for whole words come before queries for prefixes. In each
 * of the two groups, the query for all words comes first. Then come the queries for one word, by field.
 */
function queriesFor(words: readonly string[]): { column: string; query: string }[] {
  const lexemes = words.flatMap(wordsOf).map(lexeme);
  return ["", ":*"].flatMap((beginning) => {
    const each = lexemes.map((word) => word + beginning);
    return [
      { column: "whole", query: each.join(" & ") },
      ...["name", "category", "description"].map((column) => ({ column, query: each.join(" | ") })),
    ];
  });
}

/** Splits a text into words as the tokenizer of FTS5 does. */
function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}\p{M}\p{Co}]+/gu) ?? [];
}

/** Returns a text query for documents with all of the keys. */
function keysQuery(keys: readonly string[]): string {
  return keys.map((key) => lexeme(keyToken(key))).join(" & ");
}

/** Quotes a word for text vectors and queries. */
function lexeme(word: string): string {
  return `'${word}'`;
}

/** Encodes a key of any characters as a single word. */
function keyToken(key: string): string {
  return `x${Buffer.from(key).toString("hex")}`;
}
