import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { createValidator, type Violation } from "@bufbuild/protovalidate";
import { pointer, type Step, type WireError } from "./error.ts";
import { isInline, isTagged, oneofOptions, wireName } from "./names.ts";
import { type DecodeLimits, decode } from "./wire.ts";

/** The most broken rules that decodeValid reports. */
export const MAX_ERRORS = 20;

export type DecodedValid<T> =
  | { ok: true; message: T }
  | { ok: false; error: WireError; errors: readonly [WireError, ...WireError[]] };

/**
 * Whether a text matches a pattern of a contract. The patterns are ours: linted as RE2 and linear, so the platform's
 * RegExp, compiled once, stands in for protovalidate's RE2 engine at half of the cost. Throws SyntaxError for a pattern
 * that is no RegExp.
 */
export function regexMatch(pattern: string, against: string): boolean {
  let regex = regexes.get(pattern);
  if (regex === undefined) {
    regex = new RegExp(pattern, "u");
    regexes.set(pattern, regex);
  }
  return regex.test(against);
}

/** Bounded by the number of patterns in the contracts. */
const regexes = new Map<string, RegExp>();

const validator = createValidator({ regexMatch });

/**
 * Decodes a document as decode does, and checks the rules of its contract (protovalidate).
 *
 * `errors` holds up to MAX_ERRORS faults with paths in the document's own names; `error` is the first of them. Throws
 * only for a contract that is wrong in itself.
 */
export function decodeValid<Desc extends DescMessage>(
  schema: Desc,
  json: unknown,
  limits: DecodeLimits = {},
): DecodedValid<MessageShape<Desc>> {
  const decoded = decode(schema, json, limits);
  if (!decoded.ok) return { ok: false, error: decoded.error, errors: [decoded.error] };
  const result = validator.validate(schema, decoded.message);
  if (result.kind === "valid") return decoded;
  if (result.kind === "error") throw result.error;
  const [error, ...more] = result.violations.slice(0, MAX_ERRORS).map(toWireError) as [
    WireError,
    ...WireError[],
  ];
  return { ok: false, error, errors: [error, ...more] };
}

function toWireError(violation: Violation): WireError {
  return {
    path: pointer(wirePath(violation.field)),
    reason: violation.ruleId === "required" ? "missing_member" : "broken_rule",
    message: violation.message === "" ? `the rule ${violation.ruleId} is broken` : violation.message,
    rule: violation.ruleId,
  };
}

/** A path of fields as the steps of the document: what is inline or merged by a tag adds none. */
export function wirePath(path: Path): Step[] {
  const steps: Step[] = [];
  for (const element of path) {
    switch (element.kind) {
      case "field":
        if (!isInline(element.parent) && !isTagged(element)) steps.push(wireName(element));
        break;
      case "oneof":
        steps.push(...oneofSteps(element));
        break;
      case "list_sub":
        steps.push(element.index);
        break;
      case "map_sub":
        steps.push({ sent: String(element.key) });
        break;
      default:
        break;
    }
  }
  return steps;
}

/** A oneof's own place: its tag, or the name that its members share. */
function oneofSteps(oneof: Extract<Path[number], { kind: "oneof" }>): Step[] {
  const { tag, inherited } = oneofOptions(oneof);
  if (tag !== "") return inherited ? [] : [tag];
  const names = new Set(oneof.fields.map(wireName));
  return names.size === 1 && !isInline(oneof.parent) ? [...names] : [];
}
