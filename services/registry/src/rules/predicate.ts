import { celEnv, isCelError, parse, plan } from "@bufbuild/cel";

type Expr = NonNullable<ReturnType<typeof parse>["expr"]>;

/** The variables of a predicate. Whole numbers are bigints, the form of CEL's `int`. */
export interface PredicateFacts {
  readonly from: PartyFacts;
  readonly to: PartyFacts & { readonly trust: number };
  readonly justification: string;
  readonly task: Readonly<Record<string, string | bigint | string[]>>;
}

/** The facts about one agent. */
export interface PartyFacts {
  readonly id: string;
  readonly principal: string;
  /** The organization that the record names; absent if the agent's principal is not a member of it. */
  readonly organization?: string;
  readonly tags: string[];
}

/** The result of evaluating a predicate. */
export type Verdict =
  | { readonly holds: boolean }
  /** The evaluation failed, for example because a fact is absent. The text is the reason. */
  | { readonly failure: string };

/** A compiled, permitted predicate. */
export type Predicate = (facts: PredicateFacts) => Verdict;

/** Thrown if a source is not a permitted predicate. The message states the reason. */
export class PredicateError extends Error {
  override readonly name = "PredicateError";
}

/**
 * Limits in characters: of one predicate (MAX_PREDICATE), of all predicates of a manifest (MAX_PREDICATES), and of a
 * text that an error or a failure quotes (MAX_FAILURE). MAX_PARTS limits the syntax nodes of one predicate, and
 * MAX_NESTING its open brackets at one place. Without MAX_NESTING, the size of the stack would limit them.
 */
export const MAX_PREDICATE = 1_000;
export const MAX_PREDICATES = 8_000;
const MAX_PARTS = 200;
const MAX_NESTING = 64;
const MAX_FAILURE = 200;

const VARIABLES = ["from", "to", "justification", "task"];
const PARTY = ["id", "principal", "organization", "tags"];
/**
 * The permitted members of each variable. The registration refuses a predicate with any other member, because a
 * misspelt member would deny every delegation.
 */
const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  from: PARTY,
  to: [...PARTY, "trust"],
  justification: [],
  task: ["capability", "priority", "depth", "max_cost_microcents", "max_tokens", "attachments"],
};

/**
 * The permitted functions. Each node of a predicate is evaluated at most once, and its cost is linear in the length
 * of its arguments. Macros evaluate a node once per list element, and the cost of regular expressions is not linear.
 * So neither is permitted.
 */
const FUNCTIONS = new Set([
  ...["_&&_", "_||_", "!_", "_?_:_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in"],
  ...["_+_", "_-_", "_*_", "_/_", "_%_", "-_", "_[_]"],
  ...["size", "contains", "startsWith", "endsWith", "int", "uint", "double", "string"],
]);

/**
 * Functions that search one text in another. Their cost is the product of both texts' lengths. So both arguments
 * must be facts or literals, which are short.
 */
const TEXT_FUNCTIONS = new Set(["contains", "startsWith", "endsWith"]);

const ENVIRONMENT = celEnv();

/**
 * Compiles a predicate: a CEL expression over the facts of one delegation.
 *
 * @throws PredicateError
 */
export function readPredicate(source: string): Predicate {
  if (source.length > MAX_PREDICATE) throw new PredicateError(`has more than ${MAX_PREDICATE} characters`);
  if (nestingOf(source) > MAX_NESTING)
    throw new PredicateError(`nests brackets more than ${MAX_NESTING} deep`);
  const parsed = parseOnly(source);
  checkParts(parsed.expr);
  const evaluateExpression = plan(ENVIRONMENT, parsed);
  return (facts) => {
    // CEL throws for unbound names. Such an error counts as a failed evaluation, as every other error does.
    try {
      const result: unknown = evaluateExpression(facts as never);
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
    throw new PredicateError(`is not a CEL expression: ${shorten(messageOf(error))}`);
  }
}

/** Returns the largest number of open brackets at one place. Brackets in texts count too. */
function nestingOf(source: string): number {
  let open = 0;
  let most = 0;
  for (const character of source) {
    if ("([{".includes(character)) most = Math.max(most, ++open);
    else if (")]}".includes(character)) open--;
  }
  return most;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function shorten(text: string): string {
  return Array.from(text).slice(0, MAX_FAILURE).join("");
}

/** Checks every node of a predicate. A predicate has at most {@link MAX_PARTS} nodes. */
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

/**
 * Checks one node.
 *
 * @returns the child nodes
 */
function checkPart({ exprKind: { case: kind, value } }: Expr): (Expr | undefined)[] {
  switch (kind) {
    case "constExpr":
      return [];
    case "identExpr":
      if (VARIABLES.includes(value.name)) return [];
      throw new PredicateError(`names ${shorten(value.name)}, but the variables are ${VARIABLES.join(", ")}`);
    case "selectExpr": {
      const { operand, field } = value;
      const variable = operand?.exprKind.case === "identExpr" ? operand.exprKind.value.name : "";
      if (Object.hasOwn(MEMBERS, variable) && MEMBERS[variable]?.includes(field)) return [operand];
      throw new PredicateError(`names ${shorten(`${variable}.${field}`)}, which is not a fact`);
    }
    case "callExpr": {
      if (!FUNCTIONS.has(value.function)) {
        throw new PredicateError(`calls ${shorten(value.function)}, which is not a permitted function`);
      }
      const parts = [value.target, ...value.args];
      if (TEXT_FUNCTIONS.has(value.function) && parts.some((part) => part?.exprKind.case === "callExpr")) {
        throw new PredicateError(
          `calls ${value.function} on an expression that is neither a fact nor a literal`,
        );
      }
      return parts;
    }
    case "listExpr":
      return value.elements;
    default:
      throw new PredicateError(
        kind === "comprehensionExpr" ? "uses a macro over a list" : "creates a map or a message",
      );
  }
}

/** Maximum number of predicates in the cache. */
const MAX_KEPT = 1_000;

/** Caches compiled predicates by their source. A new predicate replaces the oldest of {@link MAX_KEPT} predicates. */
export class Predicates {
  readonly #predicates = new Map<string, Predicate>();

  /**
   * Returns the compiled predicate of a source.
   *
   * @throws PredicateError
   */
  read(source: string): Predicate {
    let predicate = this.#predicates.get(source);
    if (predicate !== undefined) return predicate;
    predicate = readPredicate(source);
    const [oldest] = this.#predicates.size >= MAX_KEPT ? this.#predicates.keys() : [];
    if (oldest !== undefined) this.#predicates.delete(oldest);
    this.#predicates.set(source, predicate);
    return predicate;
  }

  /** Evaluates a registered predicate. Returns a failure if the source no longer compiles. */
  evaluate(source: string, facts: PredicateFacts): Verdict {
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
 * @returns every fault, with the delegate of the faulty rule; only one fault if the predicates exceed MAX_PREDICATES
 */
export function checkPredicates(
  rules: Readonly<Record<string, { readonly predicate?: string | undefined }>>,
  predicates: Predicates,
): { readonly delegate: string; readonly problem: string }[] {
  const problems: { delegate: string; problem: string }[] = [];
  let remaining = MAX_PREDICATES;
  for (const [delegate, { predicate }] of Object.entries(rules)) {
    if (predicate === undefined) continue;
    remaining -= predicate.length;
    // Predicates beyond the limit are not compiled.
    if (remaining < 0)
      return [{ delegate, problem: `exceeds ${MAX_PREDICATES} characters of predicates in the manifest` }];
    try {
      predicates.read(predicate);
    } catch (error) {
      if (!(error instanceof PredicateError)) throw error;
      problems.push({ delegate, problem: error.message });
    }
  }
  return problems;
}
