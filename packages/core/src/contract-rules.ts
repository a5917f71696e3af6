import type { DescField, DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { createValidator } from "@bufbuild/protovalidate";
import { holdsCycle, isCyclic } from "./contract-cycles.ts";
import { regexMatch } from "./contract-patterns.ts";
import { isSureToKeepRules } from "./quick-rules.ts";

/** A rule of a contract that a message breaks. */
export interface BrokenRule {
  /** The field at fault, from the message that was checked. */
  field: Path;
  /** The rule's id, e.g. `string.pattern`. */
  rule: string;
  message: string;
}

const validator = createValidator({ regexMatch });

/**
 * The rules of its contract that a message breaks (protovalidate), those of messages within it included; empty when it
 * keeps them all. Throws only for a contract that is wrong in itself.
 */
export function brokenRules<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
): BrokenRule[] {
  return isSureToKeepRules(schema, message) ? [] : brokenRulesByProtovalidate(schema, message);
}

/** The same, with protovalidate asked in every case. */
export function brokenRulesByProtovalidate<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
): BrokenRule[] {
  const broken = check(schema, message, []);
  if (!holdsCycle(schema)) return broken;
  checkCyclic(schema, message, [], broken);
  const seen = new Set<string>();
  return broken.filter((each) => {
    const key = `${each.rule} ${each.field.map(stepKey).join("/")}`;
    return !seen.has(key) && seen.add(key);
  });
}

function check(schema: DescMessage, message: Message, at: Path): BrokenRule[] {
  const result = validator.validate(schema, message);
  if (result.kind === "error") throw result.error;
  return (result.violations ?? []).map((violation) => ({
    field: [...at, ...violation.field],
    rule: violation.ruleId,
    message: violation.message,
  }));
}

/**
 * protovalidate 1.3 loses the rules behind a field that closes a cycle of message types: when it plans the outer
 * message, the plan of the inner one is not made yet, and what looks empty is pruned. So each message of such a type is
 * checked once more for itself.
 */
function checkCyclic(schema: DescMessage, message: Message, at: Path, broken: BrokenRule[]): void {
  for (const field of schema.fields) {
    if (field.message === undefined || !(isCyclic(field.message) || holdsCycle(field.message))) continue;
    for (const { child, path } of children(field, message)) {
      const here = [...at, ...path];
      if (isCyclic(field.message)) broken.push(...check(field.message, child, here));
      checkCyclic(field.message, child, here, broken);
    }
  }
}

function children(field: DescField, message: Message): { child: Message; path: Path }[] {
  const local = message as unknown as Record<string, unknown>;
  const chosen = field.oneof && (local[field.oneof.localName] as { case?: string; value?: Message });
  const value = field.oneof
    ? chosen?.case === field.localName
      ? chosen.value
      : undefined
    : local[field.localName];
  if (value === undefined) return [];
  if (field.fieldKind === "list") {
    return (value as Message[]).map((child, index) => ({
      child,
      path: [field, { kind: "list_sub", index }],
    }));
  }
  if (field.fieldKind === "map") {
    const entries = Object.entries(value as Record<string, Message>);
    return entries.map(([key, child]) => ({ child, path: [field, { kind: "map_sub", key }] }));
  }
  return [{ child: value as Message, path: [field] }];
}

function stepKey(step: Path[number]): string {
  if (step.kind === "list_sub") return String(step.index);
  return step.kind === "map_sub" ? JSON.stringify(step.key) : step.name;
}
