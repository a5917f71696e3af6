import { celEnv, isCelError, parse, plan } from "@bufbuild/cel";

type Expr = NonNullable<ReturnType<typeof parse>["expr"]>;

/** What predicates are evaluated on. Whole numbers are bigints, as CEL's `int`. */
export interface PredicateFacts {
  readonly from: PartyFacts;
  readonly to: PartyFacts & { readonly trust: number };
  readonly justification: string;
  readonly task: Readonly<Record<string, string | bigint | string[]>>;
}

/** What predicates know of an agent. */
export interface PartyFacts {
  readonly id: string;
  readonly principal: string;
  /** Absent where the principal is no member of the organization that the record names. */
  readonly organization?: string;
  readonly tags: string[];
}

/** What a predicate says of some facts. */
export type Verdict =
  | { readonly holds: boolean }
  /** It could not be decided; why, in at most 200 characters. */
  | { readonly failure: string };

/** A predicate that was read and found fit. */
export type Predicate = (facts: PredicateFacts) => Verdict;

/** The source is no expression that may be a predicate; the message says why. */
export class PredicateError extends Error {
  override readonly name = "PredicateError";
}

/** Characters that a predicate may have, and all of a manifest's; parts that one may have. */
export const MAX_PREDICATE = 1_000;
export const MAX_PREDICATES = 8_000;
const MAX_PARTS = 200;
const MAX_FAILURE = 200;

const VARIABLES = ["from", "to", "justification", "task"];
const PARTY = ["id", "principal", "organization", "tags"];
/** What stands behind a dot, since a misspelt name would deny everything later. */
const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  from: PARTY,
  to: [...PARTY, "trust"],
  justification: [],
  task: ["capability", "priority", "depth", "max_cost_microcents", "max_tokens", "attachments"],
};

/**
 * What a predicate may call. Each part is then evaluated at most once, and costs no more than the length of what it gets:
 * macros over lists would be evaluated once for each member, and what a regular expression costs its length does not tell.
 */
const FUNCTIONS = new Set([
  ...["_&&_", "_||_", "!_", "_?_:_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in"],
  ...["_+_", "_-_", "_*_", "_/_", "_%_", "-_", "_[_]"],
  ...["size", "contains", "startsWith", "endsWith", "int", "uint", "double", "string"],
]);

/** Looking for one long text in another costs the product of their lengths, so both are to be short: facts, or written out. */
const TEXT_FUNCTIONS = new Set(["contains", "startsWith", "endsWith"]);

const ENVIRONMENT = celEnv();

/**
 * Reads a predicate: a CEL expression over the facts of one delegation.
 *
 * @throws PredicateError
 */
export function readPredicate(source: string): Predicate {
  if (source.length > MAX_PREDICATE) throw new PredicateError(`has more than ${MAX_PREDICATE} characters`);
  const parsed = parseOnly(source);
  checkParts(parsed.expr);
  const evaluate = plan(ENVIRONMENT, parsed);
  return (facts) => {
    // Names that are not bound are errors of CEL, and so are these, whatever they are.
    try {
      const result: unknown = evaluate(facts as never);
      if (typeof result === "boolean") return { holds: result };
      return { failure: shorten(isCelError(result) ? result.message : "is neither true nor false") };
    } catch (error) {
      return { failure: shorten(messageOf(error)) };
    }
  };
}

function parseOnly(source: string) {
  try {
    return parse(source);
  } catch (error) {
    // Deep nesting ends in a RangeError.
    throw new PredicateError(`is no CEL expression: ${shorten(messageOf(error))}`);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function shorten(text: string): string {
  return Array.from(text).slice(0, MAX_FAILURE).join("");
}

/** Looks at every part, at most {@link MAX_PARTS}. */
function checkParts(root: Expr): void {
  const waiting: (Expr | undefined)[] = [root];
  let parts = 0;
  while (waiting.length > 0) {
    const part = waiting.pop();
    if (part === undefined) continue;
    parts += 1;
    if (parts > MAX_PARTS) throw new PredicateError(`has more than ${MAX_PARTS} parts`);
    waiting.push(...checkPart(part));
  }
}

/** @returns the parts of a part */
function checkPart({ exprKind: { case: kind, value } }: Expr): (Expr | undefined)[] {
  switch (kind) {
    case "constExpr":
      return [];
    case "identExpr":
      if (VARIABLES.includes(value.name)) return [];
      throw new PredicateError(`names ${shorten(value.name)}, which is none of ${VARIABLES.join(", ")}`);
    case "selectExpr": {
      const { operand, field } = value;
      const of = operand?.exprKind.case === "identExpr" ? operand.exprKind.value.name : "";
      if (Object.hasOwn(MEMBERS, of) && MEMBERS[of]?.includes(field)) return [operand];
      throw new PredicateError(`names ${shorten(`${of}.${field}`)}, which is no fact`);
    }
    case "callExpr": {
      if (!FUNCTIONS.has(value.function)) {
        throw new PredicateError(`calls ${shorten(value.function)}, which predicates may not`);
      }
      const parts = [value.target, ...value.args];
      if (TEXT_FUNCTIONS.has(value.function) && parts.some((part) => part?.exprKind.case === "callExpr")) {
        throw new PredicateError(`asks ${value.function} of what is neither a fact nor written out`);
      }
      return parts;
    }
    case "listExpr":
      return value.elements;
    default:
      throw new PredicateError(
        kind === "comprehensionExpr" ? "uses a macro over a list" : "makes a map or a message",
      );
  }
}

/** Predicates kept read. */
const MAX_KEPT = 1_000;

/** Predicates by their source, so that a question does not read them again: the newest {@link MAX_KEPT}. */
export class Predicates {
  readonly #kept = new Map<string, Predicate>();

  /** @throws PredicateError */
  read(source: string): Predicate {
    let predicate = this.#kept.get(source);
    if (predicate !== undefined) return predicate;
    predicate = readPredicate(source);
    const [oldest] = this.#kept.size >= MAX_KEPT ? this.#kept.keys() : [];
    if (oldest !== undefined) this.#kept.delete(oldest);
    this.#kept.set(source, predicate);
    return predicate;
  }

  /** What a registered predicate says; one that is not read any more is not decided. */
  judge(source: string, facts: PredicateFacts): Verdict {
    try {
      return this.read(source)(facts);
    } catch (error) {
      if (error instanceof PredicateError) return { failure: error.message };
      throw error;
    }
  }
}

/**
 * Checks the predicates of a manifest's rules.
 *
 * @returns what is wrong, by the delegate that the rule is for
 */
export function checkPredicates(
  rules: Readonly<Record<string, { readonly predicate?: string | undefined }>>,
  predicates: Predicates,
): { readonly delegate: string; readonly problem: string }[] {
  const problems: { delegate: string; problem: string }[] = [];
  let left = MAX_PREDICATES;
  for (const [delegate, { predicate }] of Object.entries(rules)) {
    if (predicate === undefined) continue;
    left -= predicate.length;
    // What is too much is not read.
    if (left < 0)
      return [{ delegate, problem: `makes more than ${MAX_PREDICATES} characters of predicates` }];
    try {
      predicates.read(predicate);
    } catch (error) {
      if (!(error instanceof PredicateError)) throw error;
      problems.push({ delegate, problem: error.message });
    }
  }
  return problems;
}
