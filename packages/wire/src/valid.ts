import type { DescField, DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { type BrokenRule, brokenRules } from "@depute/core";
import { pointer, type Step, type WireError } from "./error.ts";
import { fieldOptions, isInline, isTagged, oneofOptions, wireName } from "./names.ts";
import { type DecodeLimits, decode } from "./wire.ts";

/** The most broken rules that decodeValid reports. */
export const MAX_ERRORS = 20;

export type DecodedValid<T> =
  | { ok: true; message: T }
  | { ok: false; error: WireError; errors: readonly [WireError, ...WireError[]] };

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
  const [error, ...more] = brokenRules(schema, decoded.message).slice(0, MAX_ERRORS).map(toWireError);
  return error === undefined ? decoded : { ok: false, error, errors: [error, ...more] };
}

function toWireError({ field, rule, message }: BrokenRule): WireError {
  return {
    path: pointer(wirePath(field)),
    reason: rule === "required" ? "missing_member" : "broken_rule",
    message: message === "" ? `the rule ${rule} is broken` : message,
    rule,
  };
}

/** A path of fields as the steps of the document: what is inline, merged by a tag or collected adds none. */
export function wirePath(path: Path): Step[] {
  const steps: Step[] = [];
  for (const element of path) {
    switch (element.kind) {
      case "field":
        if (hasStep(element)) steps.push(wireName(element));
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

function hasStep(field: DescField): boolean {
  return !isInline(field.parent) && !isTagged(field) && !fieldOptions(field).extraMembers;
}

/** A oneof's own place: its tag, or the name that its members share. */
function oneofSteps(oneof: Extract<Path[number], { kind: "oneof" }>): Step[] {
  const { tag, inherited } = oneofOptions(oneof);
  if (tag !== "") return inherited ? [] : [tag];
  const names = new Set(oneof.fields.map(wireName));
  return names.size === 1 && !isInline(oneof.parent) ? [...names] : [];
}
