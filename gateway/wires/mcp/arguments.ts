import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { invalid } from "@depute/core";

/** The arguments of a tool's call, read one by one. What is not asked for is not looked at. */
export class Arguments {
  readonly #given: Readonly<Record<string, unknown>>;

  constructor(given: Readonly<Record<string, unknown>>) {
    this.#given = given;
  }

  has(name: string): boolean {
    return this.#of(name) !== undefined;
  }

  /** Empty where it is not given. @throws DeputeError INVALID_REQUEST */
  text(name: string): string {
    const value = this.#of(name) ?? "";
    if (typeof value !== "string") throw invalid(`/${name}`, "a text is wanted");
    return value;
  }

  /** @throws DeputeError INVALID_REQUEST */
  wanted(name: string): string {
    const value = this.text(name);
    if (value === "") throw invalid(`/${name}`, "is wanted");
    return value;
  }

  /** @throws DeputeError INVALID_REQUEST */
  count(name: string, otherwise: number, max = Number.MAX_SAFE_INTEGER): number {
    const value = this.#of(name) ?? otherwise;
    if (Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= max)
      return value as number;
    throw invalid(`/${name}`, `a whole number from 0 to ${max} is wanted`);
  }

  /** Any JSON; undefined where it is not given. */
  value(name: string): Value | undefined {
    const value = this.#of(name);
    return value === undefined ? undefined : fromJson(ValueSchema, value as JsonValue);
  }

  /** A list of objects with these texts. @throws DeputeError INVALID_REQUEST */
  objects<Name extends string>(name: string, members: readonly Name[]): Record<Name, string>[] {
    const value = this.#of(name);
    if (!Array.isArray(value)) throw invalid(`/${name}`, "a list is wanted");
    return value.map((one, i) => {
      const inner = new Arguments((one ?? {}) as Record<string, unknown>);
      try {
        return Object.fromEntries(members.map((member) => [member, inner.wanted(member)])) as Record<
          Name,
          string
        >;
      } catch {
        throw invalid(`/${name}/${i}`, `${members.join(", ")} are wanted, each a text`);
      }
    });
  }

  #of(name: string): unknown {
    return Object.hasOwn(this.#given, name) ? this.#given[name] : undefined;
  }
}
