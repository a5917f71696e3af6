import { type DescMessage, ScalarType } from "@bufbuild/protobuf";
import type { Check } from "./quick-checks.ts";

/**
 * The check that an expression of CEL stands for, where it says which texts of a message are empty: `this.a != ''`, several
 * of those with `||` between them, or `(this.a != '') != (this.b != '')`. Undefined for all other expressions.
 */
export function readExpression(desc: DescMessage, expression: string): Check | undefined {
  const either = ONE_OF_TWO.exec(expression);
  if (either !== null) {
    const [first, second] = [readTerm(desc, either[1]), readTerm(desc, either[2])];
    return first && second && ((message) => first(message) !== second(message));
  }
  const terms = expression.split(" || ").map((term) => readTerm(desc, term));
  if (terms.includes(undefined)) return undefined;
  return (message) => (terms as Check[]).some((term) => term(message));
}

const ONE_OF_TWO = /^\((this\.\w+ [!=]= '')\) != \((this\.\w+ [!=]= '')\)$/;
const TERM = /^this\.(\w+) ([!=])= ''$/;

function readTerm(desc: DescMessage, text = ""): Check | undefined {
  const [, name, sign] = TERM.exec(text) ?? [];
  const field = desc.fields.find((each) => each.name === name);
  // A text in a oneof, or one that may be absent, reads otherwise.
  if (field?.fieldKind !== "scalar" || field.scalar !== ScalarType.STRING) return undefined;
  if (field.oneof !== undefined || field.proto.proto3Optional) return undefined;
  const { localName } = field;
  return (message) => ((message as Record<string, unknown>)[localName] === "") === (sign === "=");
}
