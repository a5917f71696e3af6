import { readFile } from "node:fs/promises";
import { fromJsonString, type JsonObject } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { GetAuditRecordProofResponse } from "@depute/contracts/depute/tokens/v1/audit_service_pb";
import type { AuditSeal } from "@depute/dct/transparency";
import { CommandError, EXIT } from "../exit-codes.ts";
import { oneLine } from "../print/safe-text.ts";
import type { Invocation } from "../table/command.ts";
import { type Connection, connected } from "./connection.ts";
import { readText } from "./files.ts";
import { remark, write } from "./output.ts";
import { requestFrom } from "./request.ts";

/** Maximum number of sealed days that the command checks: more than 27 years. */
const MAX_DAYS = 10_000;

/** `depute audit export`. */
export async function exportAudit(invocation: Invocation): Promise<void> {
  const request = requestFrom(invocation);
  await connected(invocation, async (connection) => {
    for await (const line of linesOf(connection, request)) write(line);
  });
}

/**
 * `depute audit verify`.
 *
 * @returns 1 if a sealed day is altered, or the proof of its seal in the transparency log is wrong; otherwise 0
 */
export async function verifyAudit(invocation: Invocation): Promise<number> {
  const { AuditChain, sequenceOfLine } = await import("@depute/dct/transparency");
  const { nativeEngine } = await import("@depute/dct/native");
  const file = String(invocation.values.file ?? "");
  return connected(invocation, async (connection) => {
    const seals = await sealsOf(connection);
    const chain = new AuditChain(nativeEngine.sha256, seals);
    const lines = file === "" ? linesOf(connection, {}) : await linesIn(file);
    for await (const line of lines) {
      const bytes = Buffer.from(line);
      const sequence = sequenceOfLine(bytes);
      if (sequence === undefined) throw noRecord(line);
      chain.add(sequence, bytes);
    }
    const { days, unsealed } = chain.end();
    let exitCode: number = EXIT.ok;
    for (const day of days) {
      const { seal } = day;
      const name = `${seal.day}, records ${seal.firstSequence} to ${seal.lastSequence}`;
      const log = await inLog(connection, seal);
      if (day.kind === "altered" || log.kind === "wrong") exitCode = EXIT.failed;
      const state = day.kind === "altered" ? `altered: ${day.fault}` : day.kind;
      write(`${name}: ${state}; ${log.text}`);
    }
    if (days.length === 0) remark("No day is sealed yet.");
    if (unsealed > 0) remark(`${unsealed} records belong to a day that is not sealed yet.`);
    return exitCode;
  });
}

/** `depute audit prove`: prints the proof of a record as one document. */
export async function proveAudit(invocation: Invocation): Promise<void> {
  const request = requestFrom(invocation);
  await connected(invocation, async (connection) => {
    write(JSON.stringify(await connection.call("audit", "getAuditRecordProof", request), undefined, 2));
  });
}

/** `depute verify-audit-proof FILE`: checks a proof offline. @returns 0 for a valid proof, else 1 */
export async function verifyAuditProof({ values }: Invocation): Promise<number> {
  const { faultOfAuditRecordProof } = await import("@depute/client");
  const proof = await proofIn(String(values.FILE));
  const fault = faultOfAuditRecordProof(proof, new Set(values.log as readonly string[]));
  write(oneLine(fault === undefined ? `valid: ${proof.seal?.day}, ${proof.line}` : `FAILED: ${fault}`));
  return fault === undefined ? EXIT.ok : EXIT.failed;
}

async function proofIn(file: string): Promise<GetAuditRecordProofResponse> {
  const { GetAuditRecordProofResponseSchema } = await import(
    "@depute/contracts/depute/tokens/v1/audit_service_pb"
  );
  try {
    return fromJsonString(GetAuditRecordProofResponseSchema, readText(file));
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(
      `${file} is no proof: ${(error as Error).message}; name a file of depute audit prove`,
    );
  }
}

async function* linesOf(connection: Connection, request: JsonObject): AsyncIterable<string> {
  for await (const { lines = [] } of connection.stream("audit", "exportAuditRecords", request))
    yield* lines as string[];
}

/**
 * Returns the lines of a file.
 *
 * @throws CommandError if the file cannot be read
 */
async function linesIn(file: string): Promise<string[]> {
  const text = await readFile(file, "utf8").catch((error: Error) => {
    throw new CommandError(`${file} cannot be read: ${error.message}; name a file of depute audit export`);
  });
  return text.split("\n").filter((line) => line !== "");
}

function noRecord(line: string): CommandError {
  return new CommandError(
    `the line ${line.slice(0, 40)} is not an audit record; use depute audit export without filters`,
  );
}

async function sealsOf(connection: Connection): Promise<AuditSeal[]> {
  const seals: AuditSeal[] = [];
  let pageToken = "";
  do {
    const page = await connection.call("audit", "listAuditSeals", { pageSize: 1000, pageToken });
    for (const seal of (page.seals ?? []) as JsonObject[]) {
      seals.push({
        day: String(seal.day),
        firstSequence: Number(seal.firstSequence),
        lastSequence: Number(seal.lastSequence),
        previousHead: bytesOf(seal.previousHead),
        head: bytesOf(seal.head),
        rootHash: bytesOf(seal.rootHash),
      });
    }
    pageToken = String(page.nextPageToken ?? "");
  } while (pageToken !== "" && seals.length < MAX_DAYS);
  return seals;
}

/** Decodes a bytes field of ProtoJSON, which is base64 text. */
function bytesOf(text: unknown): Uint8Array {
  return Buffer.from(String(text ?? ""), "base64");
}

interface InLog {
  readonly kind: "proven" | "absent" | "wrong";
  readonly text: string;
}

/**
 * Checks the proof that the transparency log contains a seal: the leaf, the path to the root, and the signature of the
 * head.
 */
async function inLog(connection: Connection, seal: AuditSeal): Promise<InLog> {
  const { auditSealBytes, isRooted, leafHash, logEntryBytes, rootedAuditSealBytes } = await import(
    "@depute/dct/transparency"
  );
  const { verifyInclusion, verifyLogHead } = await import("@depute/dct/transparency");
  const { nativeEngine: engine } = await import("@depute/dct/native");
  const digest = engine.sha256(isRooted(seal) ? rootedAuditSealBytes(seal) : auditSealBytes(seal));
  const proof = await proofOf(connection, digest);
  if (proof === undefined) return { kind: "absent", text: "its seal is not in the transparency log yet" };
  const entry = proof.entry as JsonObject;
  const head = proof.head as JsonObject;
  const time = Date.parse(String(entry.appendTime));
  const leaf = leafHash(engine.sha256, logEntryBytes({ kind: "audit_seal", digest, time }));
  const root = bytesOf(head.rootHash);
  const treeSize = Number(head.treeSize);
  const signed = { log: String(head.log), treeSize, rootHash: root, time: Date.parse(String(head.headTime)) };
  const hashes = ((proof.hashes ?? []) as string[]).map(bytesOf);
  const index = Number(entry.index ?? 0);
  const isIn = verifyInclusion(engine.sha256, { index, treeSize, leaf, root, proof: hashes });
  return isIn && verifyLogHead(engine, signed, bytesOf(head.signature))
    ? { kind: "proven", text: `leaf ${index} of the log ${signed.log}` }
    : { kind: "wrong", text: "the proof of its seal in the transparency log is wrong" };
}

/** Returns the inclusion proof of a document; undefined if the transparency log has no leaf for the document. */
async function proofOf(connection: Connection, digest: Uint8Array): Promise<JsonObject | undefined> {
  const request = { digest: Buffer.from(digest).toString("base64") };
  try {
    return await connection.call("log", "getInclusionProof", request);
  } catch (error) {
    if (ConnectError.from(error).code === Code.NotFound) return undefined;
    throw error;
  }
}
