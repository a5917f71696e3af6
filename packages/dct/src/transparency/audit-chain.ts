import { encodeBase64Url } from "@depute/core";
import { type AuditSeal, isRooted, nextAuditHead } from "./audit-seal.ts";
import { GrowingTree, leafHash } from "./merkle.ts";

/** The verdict on one sealed day of an exported audit log. */
export type AuditDayVerdict =
  /** The export has every record of the day, and no record is changed. */
  | { readonly kind: "valid"; readonly seal: AuditSeal }
  /** The export does not have the first record of the day. The missing records were deleted or not exported. */
  | { readonly kind: "incomplete"; readonly seal: AuditSeal }
  /**
   * A record after the day's first is missing, a record is changed, the root in the seal is of other records, or
   * the seal does not continue from the seal of the day before.
   */
  | { readonly kind: "altered"; readonly seal: AuditSeal; readonly fault: string };

type Sha256 = (data: Uint8Array) => Uint8Array;

/**
 * Checks the lines of an exported audit log by its seals. The caller adds the lines in the order of their sequence
 * numbers.
 */
export class AuditChain {
  readonly #sha256: Sha256;
  readonly #seals: readonly AuditSeal[];
  readonly #verdicts: AuditDayVerdict[] = [];
  /** The index of the seal whose day is read next. */
  #at = 0;
  /**
   * The sequence of the last line that was added of the current day, and the head after that line; undefined before
   * the day's first line.
   */
  #reached: { readonly head: Uint8Array; readonly sequence: number; readonly tree: GrowingTree } | undefined;
  #unsealed = 0;

  /** @param seals in ascending order of their days, without gaps */
  constructor(sha256: Sha256, seals: readonly AuditSeal[]) {
    this.#sha256 = sha256;
    this.#seals = seals;
  }

  /** Adds the next record of the export. */
  add(sequence: number, line: Uint8Array): void {
    for (;;) {
      const seal = this.#seals[this.#at];
      if (seal === undefined) {
        this.#unsealed += 1;
        return;
      }
      if (sequence > seal.lastSequence) {
        this.#endDay(seal);
        continue;
      }
      const expected = this.#reached === undefined ? seal.firstSequence : this.#reached.sequence + 1;
      if (sequence !== expected) {
        // Skips the lines of a day without its first line, and the remaining lines of an altered day.
        if (this.#reached !== undefined) this.#end(this.#altered(seal, `record ${expected} is missing`));
        return;
      }
      const head = nextAuditHead(this.#sha256, this.#reached?.head ?? seal.previousHead, line);
      const tree = this.#reached?.tree ?? new GrowingTree(this.#sha256);
      if (isRooted(seal)) tree.add(leafHash(this.#sha256, line));
      this.#reached = { head, sequence, tree };
      if (sequence === seal.lastSequence) this.#endDay(seal);
      return;
    }
  }

  /**
   * Ends the export.
   *
   * @returns a verdict for each seal, and the number of records after the last sealed day
   */
  end(): { readonly days: readonly AuditDayVerdict[]; readonly unsealed: number } {
    for (let seal = this.#seals[this.#at]; seal !== undefined; seal = this.#seals[this.#at])
      this.#endDay(seal);
    return { days: this.#verdicts, unsealed: this.#unsealed };
  }

  #endDay(seal: AuditSeal): void {
    this.#end(this.#verdictOf(seal));
  }

  #end(verdict: AuditDayVerdict): void {
    this.#verdicts.push(verdict);
    this.#at += 1;
    this.#reached = undefined;
  }

  #verdictOf(seal: AuditSeal): AuditDayVerdict {
    const before = this.#seals[this.#at - 1];
    if (before !== undefined && !follows(before, seal))
      return this.#altered(seal, `its seal does not follow the seal of ${before.day}`);
    if (this.#reached === undefined) return { kind: "incomplete", seal };
    if (this.#reached.sequence < seal.lastSequence)
      return this.#altered(seal, `record ${this.#reached.sequence + 1} is missing`);
    if (!areEqual(this.#reached.head, seal.head)) return this.#altered(seal, "a record was changed");
    return isRooted(seal) && !areEqual(this.#reached.tree.root(), seal.rootHash)
      ? this.#altered(seal, "the root in its seal is of other records")
      : { kind: "valid", seal };
  }

  #altered(seal: AuditSeal, fault: string): AuditDayVerdict {
    return { kind: "altered", seal, fault };
  }
}

function follows(before: AuditSeal, seal: AuditSeal): boolean {
  return seal.firstSequence === before.lastSequence + 1 && areEqual(seal.previousHead, before.head);
}

function areEqual(one: Uint8Array, other: Uint8Array): boolean {
  return encodeBase64Url(one) === encodeBase64Url(other);
}
