import { DatabaseSync } from "node:sqlite";
import { foldNodes, leafHash, logEntryBytes, nodeHash, nodesOf } from "@depute/dct/transparency";
import { engine } from "./client.ts";

/** Returns the bytes of an entry that `fillLog` writes. */
export function bytesOf(index: number): Uint8Array {
  return logEntryBytes({ kind: "attestation", digest: digestOf(index), time: index });
}

function digestOf(index: number): Uint8Array {
  return engine.sha256(new TextEncoder().encode(`leaf ${index}`));
}

/** Writes the same rows as separate appends to an empty log, but in one transaction. Returns the root hash. */
export function fillLog(file: string, leaves: number): Uint8Array {
  const database = new DatabaseSync(file);
  database.exec("PRAGMA synchronous = OFF; BEGIN");
  const entry = database.prepare(
    "INSERT INTO log_entries (log_index, kind, digest, append_ms) VALUES (?, 'attestation', ?, ?)",
  );
  const node = database.prepare("INSERT INTO log_nodes (position, hash) VALUES (?, ?)");
  let hashes: Uint8Array[] = [];
  for (let i = 0; i < leaves; i++) {
    entry.run(i, digestOf(i), i);
    const hash = leafHash(engine.sha256, bytesOf(i));
    node.run(i, hash);
    hashes.push(hash);
  }
  const levels = [hashes];
  for (let level = 1; hashes.length > 1; level++) {
    const above: Uint8Array[] = [];
    for (let i = 0; i + 1 < hashes.length; i += 2) {
      const hash = nodeHash(engine.sha256, hashes[i] as Uint8Array, hashes[i + 1] as Uint8Array);
      node.run(level * 2 ** 40 + i / 2, hash);
      above.push(hash);
    }
    levels.push(above);
    hashes = above;
  }
  const frontier = nodesOf({ begin: 0, end: leaves }).map(
    ({ level, index }) => levels[level]?.[index] as Uint8Array,
  );
  database
    .prepare("INSERT INTO log_state (id, size, frontier) VALUES (1, ?, ?)")
    .run(leaves, Buffer.concat(frontier));
  database.exec("COMMIT");
  database.close();
  return foldNodes(engine.sha256, frontier);
}
