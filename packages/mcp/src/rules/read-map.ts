import type { CallLimits } from "./call-limits.ts";
import type { Faults } from "./faults.ts";
import { isPointer } from "./pointer.ts";
import {
  type CallRule,
  type CostRule,
  EVERY_RESOURCE,
  RESOURCE_FORMS,
  type ResourceForm,
  type ResourceRule,
  type ToolMap,
} from "./tool-map.ts";

const MAP_MEMBERS = ["$comment", "tools", "methods", "passed"];
const RULE_MEMBERS = [
  "$comment",
  "namespace",
  "action",
  "resource",
  "cost",
  "definition",
  "checkArguments",
  "limits",
];
const RESOURCE_MEMBERS = ["argument", "arguments", "form", "absent"];
const LIMIT_MEMBERS = ["callsPerMinute", "concurrentCalls", "argumentBytes", "microcentsPerHour"] as const;
const RULE_LIMIT_MEMBERS = [...LIMIT_MEMBERS, "taskRequestsPerMinute"] as const;
const NAME = /^[a-z0-9_.:-]{1,128}$/;
const DIGEST = /^[A-Za-z0-9_-]{43}$/;

/** Methods that the proxy implements. A rule must not name them. */
const NOT_MAPPED =
  /^(initialize|ping|server\/discover|tools\/.*|tasks\/.*|notifications\/.*|(resources|prompts)\/(.*\/)?list)$/;

/** Reads a tool map. Adds each fault to `faults`. If there are faults, the returned map must not be used. */
export function readToolMap(value: unknown, path: string, faults: Faults): ToolMap {
  const map = faults.object(value, path, MAP_MEMBERS) ?? {};
  const methods = readRules(map.methods, `${path}/methods`, faults);
  for (const [method, { definition, checkArguments }] of methods) {
    if (definition !== undefined) {
      faults.add(
        `${path}/methods/${method}/definition`,
        "only a tool's rule can pin a definition: remove this member",
      );
    }
    if (!checkArguments) {
      faults.add(
        `${path}/methods/${method}/checkArguments`,
        "only a tool's rule can have this member: remove it",
      );
    }
    if (NOT_MAPPED.test(method))
      faults.add(`${path}/methods/${method}`, "this method cannot have a rule: remove it");
  }
  const passed = faults.texts(map.passed, `${path}/passed`);
  for (const method of passed) {
    if (NOT_MAPPED.test(method))
      faults.add(`${path}/passed`, `${method} cannot be allowed without a check: remove it`);
  }
  return { tools: readRules(map.tools, `${path}/tools`, faults), methods, passed: new Set(passed) };
}

/** Merges two maps. If both have a rule for a tool or a method, the rule of `over` applies. */
export function mergeMaps(base: ToolMap, over: ToolMap): ToolMap {
  return {
    tools: new Map([...base.tools, ...over.tools]),
    methods: new Map([...base.methods, ...over.methods]),
    passed: new Set([...base.passed, ...over.passed]),
  };
}

/** An empty map: the proxy refuses every request that needs a rule. */
export const EMPTY_MAP: ToolMap = { tools: new Map(), methods: new Map(), passed: new Set() };

function readRules(value: unknown, path: string, faults: Faults): Map<string, CallRule> {
  if (value === undefined) return new Map();
  const rules = Object.entries(faults.object(value, path) ?? {});
  return new Map(rules.map(([name, rule]) => [name, readRule(rule, `${path}/${name}`, faults)]));
}

function readRule(value: unknown, path: string, faults: Faults): CallRule {
  const rule = faults.object(value, path, RULE_MEMBERS) ?? {};
  const namespace = readName(rule.namespace, `${path}/namespace`, faults);
  const action = readName(rule.action, `${path}/action`, faults);
  const resource = readResource(rule.resource, `${path}/resource`, faults);
  const cost = readCost(rule.cost, `${path}/cost`, faults);
  const checkArguments = faults.flag(rule.checkArguments ?? true, `${path}/checkArguments`) !== false;
  const limits = readLimits(rule.limits, `${path}/limits`, faults, RULE_LIMIT_MEMBERS);
  const read = { namespace, action, resource, cost, checkArguments, limits };
  if (rule.definition === undefined) return read;
  const definition = faults.text(rule.definition, `${path}/definition`) ?? "";
  if (!DIGEST.test(definition))
    faults.add(`${path}/definition`, "must be a digest: 43 characters of base64url");
  return { ...read, definition };
}

/** Reads limits of calls: `{"callsPerMinute": 60, "concurrentCalls": 2}`. Each limit is at least 1. */
export function readLimits(
  value: unknown,
  path: string,
  faults: Faults,
  members: readonly (keyof CallLimits)[] = LIMIT_MEMBERS,
): CallLimits {
  if (value === undefined) return {};
  const limits = faults.object(value, path, members) ?? {};
  const read = members.flatMap((member) => {
    if (limits[member] === undefined) return [];
    const most = faults.count(limits[member], `${path}/${member}`);
    if (most === 0) faults.add(`${path}/${member}`, "must be at least 1");
    return [[member, most ?? 0] as const];
  });
  return Object.fromEntries(read);
}

function readName(value: unknown, path: string, faults: Faults): string {
  const name = faults.text(value, path) ?? "";
  if (name !== "" && !NAME.test(name))
    faults.add(path, "must be 1 to 128 characters: lower-case letters, digits and _.:-");
  return name;
}

/**
 * Reads a resource: `"*"`, `"reports/2026"`, or `{"argument": "/path", "form": "path"}`. An absent resource means every
 * resource.
 */
function readResource(value: unknown, path: string, faults: Faults): ResourceRule {
  if (value === undefined) return { kind: "fixed", value: EVERY_RESOURCE };
  if (typeof value === "string") {
    const isFixed = value === EVERY_RESOURCE || (value !== "" && !value.includes("*"));
    if (!isFixed) faults.add(path, "must be a resource without wildcards, or only *");
    return { kind: "fixed", value };
  }
  const rule = faults.object(value, path, RESOURCE_MEMBERS) ?? {};
  const pointers =
    rule.arguments === undefined
      ? [faults.text(rule.argument, `${path}/argument`) ?? ""]
      : faults.texts(rule.arguments, `${path}/arguments`);
  if (pointers.length === 0) faults.add(`${path}/arguments`, "must contain at least one pointer");
  for (const pointer of pointers) {
    if (!isPointer(pointer)) faults.add(path, `${pointer} is not a JSON pointer, such as /path`);
  }
  const form = RESOURCE_FORMS.find((known) => known === (rule.form ?? "text"));
  if (form === undefined) faults.add(`${path}/form`, `must be one of ${RESOURCE_FORMS.join(", ")}`);
  const found = { kind: "argument", pointers, form: (form ?? "text") as ResourceForm } as const;
  if (rule.absent === undefined) return found;
  return { ...found, absent: faults.text(rule.absent, `${path}/absent`) ?? "" };
}

/** Reads a cost in microcents: `100`, or `{"most": 1000, "reported": "/_meta/cost"}`. An absent cost means 0. */
function readCost(value: unknown, path: string, faults: Faults): CostRule {
  if (value === undefined) return { most: 0 };
  if (typeof value === "number") return { most: faults.count(value, path) ?? 0 };
  const rule = faults.object(value, path, ["most", "reported"]) ?? {};
  const most = faults.count(rule.most, `${path}/most`) ?? 0;
  if (rule.reported === undefined) return { most };
  const reported = faults.text(rule.reported, `${path}/reported`) ?? "";
  if (!isPointer(reported)) faults.add(`${path}/reported`, "must be a JSON pointer, such as /cost");
  return { most, reported };
}
