import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { DeputeError, ErrorReason, invalid } from "@depute/core";

/** Unknown arguments that a refusal names. */
const MAX_NAMED = 20;

/** The arguments of a tool's call, read one by one. */
export class Arguments {
  readonly #given: Readonly<Record<string, unknown>>;

  /**
   * @param known the arguments that the tool has
   * @throws DeputeError INVALID_REQUEST for an argument that it does not have
   */
  constructor(given: Readonly<Record<string, unknown>>, known: readonly string[]) {
    const unknown = Object.keys(given).filter((name) => !known.includes(name));
    if (unknown.length > 0) {
      const description = `the tool has no such argument; it has ${known.join(", ")}`;
      throw new DeputeError(ErrorReason.INVALID_REQUEST, "the tool has no such argument", {
        violations: unknown.slice(0, MAX_NAMED).map((name) => ({ field: `/${escaped(name)}`, description })),
      });
    }
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
      try {
        const inner = new Arguments((one ?? {}) as Record<string, unknown>, members);
        return Object.fromEntries(members.map((member) => [member, inner.wanted(member)])) as Record<
          Name,
          string
        >;
      } catch {
        throw invalid(`/${name}/${i}`, `${members.join(", ")} are wanted, each a text, and nothing else`);
      }
    });
  }

  #of(name: string): unknown {
    return Object.hasOwn(this.#given, name) ? this.#given[name] : undefined;
  }
}

/** A name in a JSON pointer (RFC 6901), of which 64 characters are told. */
function escaped(name: string): string {
  return name.slice(0, 64).replaceAll("~", "~0").replaceAll("/", "~1");
}
