import type { DescField, DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { createValidator } from "@bufbuild/protovalidate";
import { regexMatch } from "./contract-patterns.ts";

const reachable = new WeakMap<DescMessage, ReadonlySet<DescMessage>>();

/**
 * Returns the message types that messages of a type can contain; the type itself is one of them if it is
 * recursive. The types of google.protobuf, such as Struct, are left out, because they have no rules.
 */
function reach(desc: DescMessage): ReadonlySet<DescMessage> {
  let reached = reachable.get(desc);
  if (reached === undefined) {
    const reachedNow = new Set<DescMessage>();
    const open = [desc];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      for (const { message } of next.fields) {
        if (
          message === undefined ||
          message.file.proto.package === "google.protobuf" ||
          reachedNow.has(message)
        )
          continue;
        reachedNow.add(message);
        open.push(message);
      }
    }
    reached = reachedNow;
    reachable.set(desc, reached);
  }
  return reached;
}

/** Whether a message of the type can contain another message of the same type. */
export function isCyclic(desc: DescMessage): boolean {
  return reach(desc).has(desc);
}

const cycles = new WeakMap<DescMessage, boolean>();

/** Whether a message of the type can contain a message of a recursive type. */
export function holdsCycle(desc: DescMessage): boolean {
  let holds = cycles.get(desc);
  if (holds === undefined) {
    holds = [...reach(desc)].some(isCyclic);
    cycles.set(desc, holds);
  }
  return holds;
}

/** A protovalidate rule that a message breaks. */
export interface BrokenRule {
  /** Path of the invalid field, starting at the checked message. */
  field: Path;
  /** The rule's id, e.g. `string.pattern`. */
  rule: string;
  message: string;
}

const validator = createValidator({ regexMatch });

/**
 * Returns the rules that a message breaks, according to protovalidate. The function throws only if a rule
 * itself is faulty.
 */
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
 * Works around a fault of protovalidate 1.3: protovalidate ignores the rules of a field whose message type contains
 * itself. While protovalidate plans the outer message, the inner message's plan is still empty, and protovalidate
 * drops empty plans. So this function also validates each message of such a type separately.
 */
function checkCyclic(schema: DescMessage, message: Message, at: Path, broken: BrokenRule[]): void {
  for (const field of schema.fields) {
    if (field.message === undefined || !(isCyclic(field.message) || holdsCycle(field.message))) continue;
    for (const { child, path } of children(field, message)) {
      const fieldPath = [...at, ...path];
      if (isCyclic(field.message)) broken.push(...check(field.message, child, fieldPath));
      checkCyclic(field.message, child, fieldPath, broken);
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
