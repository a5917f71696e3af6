import { row, text } from "@depute/store";
import type { TextDocument, TextIndex, TextMatch } from "./text-index.ts";

const ROW = row({ agent_id: text, id: text, words: text });

/** Free text in Postgres: a text vector for each field, without a dictionary, so that it finds what FTS5 finds. */
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
    const found = new Map<string, TextMatch>();
    let truncated = false;
    for (const { column, query } of queriesFor(words)) {
      const hasKeys = keys.length > 0;
      const rows = await tx.all(
        ROW,
        `SELECT d.agent_id, d.id, c.words
         FROM (SELECT agent_id, id FROM capability_docs
           WHERE ${column} @@ CAST(? AS tsquery)${hasKeys ? " AND keys @@ CAST(? AS tsquery)" : ""} LIMIT ?) d
         JOIN capabilities c ON c.agent_id = d.agent_id AND c.id = d.id`,
        [query, ...(hasKeys ? [keys.map((key) => lexeme(keyToken(key))).join(" & ")] : []), limit + 1],
      );
      for (const { agent_id: agentId, id, words } of rows) {
        const place = JSON.stringify([agentId, id]);
        if (found.size >= limit && !found.has(place)) truncated = true;
        else found.set(place, { agentId, id, words });
      }
      if (truncated) break;
    }
    return { found: [...found.values()], truncated };
  },
};

function vectorsOf({ name, category, description, keys }: TextDocument): string[] {
  const fields = [name, category, description, `${name} ${category} ${description}`].map(wordsOf);
  return [...fields, keys.map(keyToken)].map((words) => words.map(lexeme).join(" "));
}

/** What has all words comes before what has one, a name before a description, and whole words before their beginnings. */
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

/** The words of a text as FTS5's tokenizer sees them. */
function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}\p{M}\p{Co}]+/gu) ?? [];
}

/** As text vectors and queries write a word. */
function lexeme(word: string): string {
  return `'${word}'`;
}

/** A key as one word, whatever it holds. */
function keyToken(key: string): string {
  return `x${Buffer.from(key).toString("hex")}`;
}
