import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Attestation } from "@depute/contracts/delegateos/v0/attestation_pb";
import { AttestationSchema } from "@depute/contracts/delegateos/v0/attestation_pb";
import { formatTime } from "@depute/core";
import { newId, signObject } from "@depute/dct";
import { decode } from "@depute/wire";
import { engine, ITEMS, issuer, startVerifier } from "../../verifier/client.ts";
import { calls, type Path, powersTo, usEach } from "../path.ts";

const LARGEST = 100_000;
const IN_FLIGHT = 16;
const CALLS = 100;
const PAGE = 20;
const RECORD = "record an attestation";
const READ = "read an attestation";
const LIST = `list ${PAGE} attestations of a contract`;

/** Attestations of one contract. The store is filled by copies of one row. */
export const attestations: Path = {
  name: "attestations of one contract",
  unit: "us",
  sizes: powersTo(LARGEST),
  lines: [RECORD, READ, LIST],
  flat: [RECORD, READ, LIST].map((line) => ({ line, from: 1_000, to: LARGEST, atMost: 2 })),
  async open() {
    const folder = mkdtempSync(join(tmpdir(), "depute-bench-"));
    let verifier = await startVerifier(folder);
    const { id: contractId } = await verifier.agree(ITEMS);
    const first = attestationOf(contractId);
    await verifier.attestations.recordAttestation({ attestation: first });
    let size = 1;
    const recorded: string[] = [first.id];
    let signed: Attestation[] = [];
    const record = async (i: number) => {
      const attestation = signed[i] as Attestation;
      await verifier.attestations.recordAttestation({ attestation });
      recorded.push(attestation.id);
    };
    const read = (i: number) =>
      verifier.attestations.getAttestation({ attestationId: recorded[i % recorded.length] ?? "" });
    const list = () => verifier.attestations.listAttestations({ contractId, pageSize: PAGE });
    const sign = () => {
      // The attestations are signed before the measurement.
      signed = Array.from({ length: 5 * calls(CALLS) }, () => attestationOf(contractId));
    };
    return {
      async grow(to) {
        await verifier.stop();
        copyAttestation(join(folder, "verifier.sqlite"), first.id, { from: size, to });
        size = to;
        verifier = await startVerifier(folder);
        sign();
        await usEach(CALLS, IN_FLIGHT, record);
      },
      measure(line) {
        if (line === RECORD) sign();
        return usEach(CALLS, IN_FLIGHT, line === RECORD ? record : line === READ ? read : list);
      },
      async close() {
        await verifier.stop();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  },
};

function attestationOf(contractId: string): Attestation {
  const result = { success: true, output: { items: [] }, costMicrocents: 1, durationMs: 1 };
  const signed = signObject(
    engine,
    "attestation",
    {
      id: newId("att"),
      version: "0.1",
      contractId,
      delegationId: newId("del"),
      principal: issuer.principal.id,
      createdAt: formatTime(Date.now()),
      type: "delegation_verification",
      result,
      childAttestations: [],
    },
    issuer,
  );
  const decoded = decode(AttestationSchema, signed);
  if (!decoded.ok) throw new Error(decoded.error.message);
  return decoded.message;
}

/** Copies an attestation of a store whose service does not run. Each copy has a number in its id. */
function copyAttestation(file: string, id: string, { from, to }: { from: number; to: number }): void {
  const db = new DatabaseSync(file);
  db.exec("PRAGMA synchronous = OFF; BEGIN");
  const columns = db.prepare("SELECT name FROM pragma_table_info('attestations')").all() as {
    name: string;
  }[];
  const values = columns.map(({ name }) => {
    if (name === "id") return "id || '-copy-' || n.i";
    return name === "record_time" ? "record_time + n.i" : name;
  });
  db.prepare(
    `WITH RECURSIVE n(i) AS (SELECT ? UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)
     INSERT INTO attestations (${columns.map(({ name }) => name).join(", ")})
     SELECT ${values.join(", ")} FROM attestations, n WHERE id = ?`,
  ).run(from, to, id);
  db.exec("COMMIT");
  db.close();
}
