/** Collects all faults of a document with their locations, so that one error reports them all. */
export class Faults {
  readonly found: string[] = [];

  add(path: string, problem: string): undefined {
    this.found.push(`${path === "" ? "the document" : path}: ${problem}`);
    return undefined;
  }

  /**
   * Returns a value if it is an object; otherwise records a fault and returns undefined. Also records a fault for
   * each member that is not in `known`. Without `known`, every member is allowed.
   */
  object(value: unknown, path: string, known?: readonly string[]): Record<string, unknown> | undefined {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      return this.add(path, "must be an object");
    }
    for (const name of Object.keys(value)) {
      if (known !== undefined && !known.includes(name))
        this.add(`${path}/${name}`, "is not a known member: remove it");
    }
    return value as Record<string, unknown>;
  }

  text(value: unknown, path: string): string | undefined {
    return typeof value === "string" && value !== ""
      ? value
      : this.add(path, "must be a text that is not empty");
  }

  texts(value: unknown, path: string): string[] {
    if (value === undefined) return [];
    if (!Array.isArray(value)) return this.add(path, "must be a list of texts") ?? [];
    return value.flatMap((one, i) => this.text(one, `${path}/${i}`) ?? []);
  }

  /** Returns an object whose members are all texts. Other members are recorded as faults. */
  textMap(value: unknown, path: string): Record<string, string> {
    if (value === undefined) return {};
    const members = Object.entries(this.object(value, path) ?? {});
    return Object.fromEntries(
      members.flatMap(([name, one]) => {
        if (typeof one === "string") return [[name, one]];
        this.add(`${path}/${name}`, "must be a text");
        return [];
      }),
    );
  }

  flag(value: unknown, path: string): boolean | undefined {
    return typeof value === "boolean" ? value : this.add(path, "must be true or false");
  }

  count(value: unknown, path: string): number | undefined {
    return Number.isSafeInteger(value) && (value as number) >= 0
      ? (value as number)
      : this.add(path, "must be a whole number from 0 to 2^53-1");
  }
}
