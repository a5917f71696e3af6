import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { DeputeError, ErrorReason, invalid } from "@depute/core";

/** Maximum number of unknown arguments that a refusal names. */
const MAX_NAMED = 20;

/** Reads the arguments of one tool call, one argument at a time. */
export class Arguments {
  readonly #values: Readonly<Record<string, unknown>>;

  /**
   * @param knownNames names of the tool's arguments
   * @throws DeputeError INVALID_REQUEST for any other argument
   */
  constructor(values: Readonly<Record<string, unknown>>, knownNames: readonly string[]) {
    const unknown = Object.keys(values).filter((name) => !knownNames.includes(name));
    if (unknown.length > 0) {
      const description = `is not an argument of the tool: use ${knownNames.join(", ")}`;
      throw new DeputeError(ErrorReason.INVALID_REQUEST, "an argument is not known to the tool", {
        violations: unknown.slice(0, MAX_NAMED).map((name) => ({ field: `/${escaped(name)}`, description })),
      });
    }
    this.#values = values;
  }

  has(name: string): boolean {
    return this.#valueOf(name) !== undefined;
  }

  /**
   * Returns a text argument; an empty text if the argument is absent.
   *
   * @throws DeputeError INVALID_REQUEST if the argument is not a text
   */
  text(name: string): string {
    const value = this.#valueOf(name) ?? "";
    if (typeof value !== "string") throw invalid(`/${name}`, "must be a text");
    return value;
  }

  /**
   * Returns a required text argument.
   *
   * @throws DeputeError INVALID_REQUEST if the argument is absent, empty or not a text
   */
  requiredText(name: string): string {
    const value = this.text(name);
    if (value === "") throw invalid(`/${name}`, "is required");
    return value;
  }

  /**
   * Returns a whole number; `otherwise` if the argument is absent.
   *
   * @throws DeputeError INVALID_REQUEST if the argument is not a whole number up to `max`
   */
  count(name: string, otherwise: number, max = Number.MAX_SAFE_INTEGER): number {
    const value = this.#valueOf(name) ?? otherwise;
    if (Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= max)
      return value as number;
    throw invalid(`/${name}`, `must be a whole number from 0 to ${max}`);
  }

  /** Returns any JSON value; undefined if the argument is absent. */
  value(name: string): Value | undefined {
    const value = this.#valueOf(name);
    return value === undefined ? undefined : fromJson(ValueSchema, value as JsonValue);
  }

  /**
   * Returns a required list of objects that have exactly these members, each a text that is not empty.
   *
   * @throws DeputeError INVALID_REQUEST
   */
  objects<Name extends string>(name: string, members: readonly Name[]): Record<Name, string>[] {
    const value = this.#valueOf(name);
    if (!Array.isArray(value)) throw invalid(`/${name}`, "must be a list");
    return value.map((one, i) => {
      try {
        const inner = new Arguments((one ?? {}) as Record<string, unknown>, members);
        return Object.fromEntries(members.map((member) => [member, inner.requiredText(member)])) as Record<
          Name,
          string
        >;
      } catch {
        throw invalid(`/${name}/${i}`, `must have only the members ${members.join(", ")}, each a text`);
      }
    });
  }

  #valueOf(name: string): unknown {
    return Object.hasOwn(this.#values, name) ? this.#values[name] : undefined;
  }
}

/** Escapes a name for a JSON pointer (RFC 6901), and shortens it to 64 characters. */
function escaped(name: string): string {
  return name.slice(0, 64).replaceAll("~", "~0").replaceAll("/", "~1");
}
