/** Prints a line. */
export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** The outcomes of stories, as a table. */
export class Results {
  passed = 0;
  failed = 0;
  skipped = 0;
  readonly #rows: string[][] = [["worker", "delegator", "story", "outcome", "seconds"]];

  /**
   * Runs a story and records its outcome. A failure is printed at once.
   *
   * @returns whether the story passed
   */
  async record(
    worker: string,
    delegator: string,
    story: string,
    run: () => Promise<unknown>,
  ): Promise<boolean> {
    const began = performance.now();
    let outcome = "passed";
    try {
      await run();
      this.passed += 1;
    } catch (error) {
      outcome = "FAILED";
      this.failed += 1;
      say(`\n${story} with worker ${worker}, delegator ${delegator}:\n${error}\n`);
    }
    const seconds = ((performance.now() - began) / 1_000).toFixed(1);
    this.#rows.push([worker, delegator, story, outcome, seconds]);
    return outcome === "passed";
  }

  print(): void {
    const widths = [0, 1, 2, 3, 4].map((column) =>
      Math.max(...this.#rows.map((row) => row[column]?.length ?? 0)),
    );
    for (const row of this.#rows) {
      say(
        row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join("  ")
          .trimEnd(),
      );
    }
    say(`\n${this.passed} passed, ${this.failed} failed, ${this.skipped} skipped`);
  }
}
