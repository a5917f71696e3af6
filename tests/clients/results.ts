/** Prints a line. */
export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** The outcomes of stories, as a table. */
export class Results {
  passed = 0;
  failed = 0;
  skipped = 0;
  /** The stories (test scenarios) that passed only when they were repeated. */
  readonly #repeated: string[] = [];
  readonly #rows: string[][] = [["worker", "delegator", "story", "outcome", "seconds"]];

  /**
   * Runs a story (a test scenario) and records its outcome. A failure is printed at once. With CI=true a failed
   * story is repeated once, because a busy machine can break a deadline.
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
    const name = `${story} with worker ${worker}, delegator ${delegator}`;
    const attempts = process.env.CI === "true" ? 2 : 1;
    let outcome = "FAILED";
    for (let attempt = 1; attempt <= attempts && outcome === "FAILED"; attempt += 1) {
      try {
        await run();
        outcome = "passed";
        if (attempt > 1) this.#repeated.push(name);
      } catch (error) {
        say(`\n${name}:\n${error}\n`);
      }
    }
    if (outcome === "passed") this.passed += 1;
    else this.failed += 1;
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
    if (this.#repeated.length > 0) {
      say(["\n*** PASSED ONLY WHEN REPEATED:", ...this.#repeated.map((name) => `***   ${name}`)].join("\n"));
    }
    say(`\n${this.passed} passed, ${this.failed} failed, ${this.skipped} skipped`);
  }
}
