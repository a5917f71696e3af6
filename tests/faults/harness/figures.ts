import { readFileSync } from "node:fs";

interface Timed {
  readonly beginMs: number;
  readonly ms: number;
}

interface FaultLine {
  readonly kind: string;
  readonly name: string;
  readonly beginMs: number;
  readonly endMs: number;
}

/** Milliseconds after the end of a fault in which a call that begins still counts as touched by the fault. */
const TOUCHED_MS = 3_000;

/**
 * Prints a line for each kind of fault: the number of such faults, the longest probe (a write and a read) and the
 * longest task that they touched, in milliseconds.
 */
export function printFigures(journals: readonly string[]): void {
  const lines = journals.flatMap((path) =>
    readFileSync(path, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as FaultLine & Timed),
  );
  const of = (kind: string) => lines.filter((line) => line.kind === kind);
  const [probes, results] = [of("probe"), of("result")];
  const kinds = new Map<string, FaultLine[]>([["(no fault)", of("calm")]]);
  for (const fault of of("fault")) kinds.set(fault.name, [...(kinds.get(fault.name) ?? []), fault]);
  console.log("fault | times | longest read and write, ms | longest task, ms");
  for (const [name, faults] of [...kinds].sort(([a], [b]) => a.localeCompare(b)))
    console.log(`${name} | ${faults.length} | ${longest(probes, faults)} | ${longest(results, faults)}`);
}

/** Returns the most milliseconds of a call that was open during a fault, or began just after it; 0 for none. */
function longest(calls: readonly Timed[], faults: readonly FaultLine[]): number {
  const touched = calls.filter(({ beginMs, ms }) =>
    faults.some((fault) => beginMs < fault.endMs + TOUCHED_MS && beginMs + ms > fault.beginMs),
  );
  return Math.max(0, ...touched.map(({ ms }) => ms));
}
