import { Ajv, type ErrorObject, type Options } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { compilePattern, UnsupportedPattern } from "./patterns.ts";
import { surveySchema } from "./schema-limits.ts";

/** The drafts of JSON Schema that are supported. */
export type Dialect = "draft-07" | "2020-12";

/**
 * How much of a schema has to be understood. `contract`: Ajv's strict mode, as DelegateOS 6.2 asks, so that a misspelt
 * keyword or a bound on no type is refused and does not quietly let everything pass. `plain`: as JSON Schema says,
 * where an unknown keyword is an annotation: schemas that agents publish carry many.
 *
 * In both, an unknown `format` and members that begin with `x-` are annotations, and `default`, `examples` and their
 * like change nothing.
 */
export type Strictness = "contract" | "plain";

/** A schema that cannot be used. */
export class InvalidSchema extends Error {
  override readonly name = "InvalidSchema";
}

/** One place where a value breaks a schema. */
export interface Violation {
  /** JSON pointer into the value. */
  path: string;
  message: string;
}

/** At most so many violations are told. */
export const MAX_VIOLATIONS = 20;

/** The violations of a value; none when it fits. Throws RangeError for a schema that recurses without end. */
export type CompiledSchema = (value: unknown) => Violation[];

const DIALECT_IDS: Record<string, Dialect> = {
  "http://json-schema.org/draft-07/schema": "draft-07",
  "https://json-schema.org/draft-07/schema": "draft-07",
  "https://json-schema.org/draft/2020-12/schema": "2020-12",
  "http://json-schema.org/draft/2020-12/schema": "2020-12",
};

const ANNOTATIONS = ["example", "externalDocs", "xml"];

/**
 * Compiles a schema of a stranger. Ajv takes schemas for trusted code, so each gets an instance of its own (nothing of
 * one tenant's `$id` is seen by another), patterns run in linear time, members are only what a value has itself, and
 * no reference leads outside. Time and memory are the caller's business: this belongs in a worker.
 *
 * @param dialect the draft of a schema whose `$schema` does not name one
 * @throws InvalidSchema, UnsupportedPattern
 */
export function compileSchema(schema: unknown, dialect: Dialect, strictness: Strictness): CompiledSchema {
  const survey = surveySchema(schema);
  if ("problem" in survey) throw new InvalidSchema(survey.problem);
  const draft = dialectOf(schema, dialect);
  const fault = metaFault(schema, draft);
  if (fault !== undefined) throw new InvalidSchema(fault);

  const ajv = draft === "draft-07" ? new Ajv(options(strictness)) : new Ajv2020(options(strictness));
  addFormats.default(ajv);
  for (const format of survey.formats) {
    if (format in Object.prototype) throw new InvalidSchema("a format of that name is not supported");
    if (!Object.hasOwn(ajv.formats, format)) ajv.addFormat(format, true);
  }
  for (const keyword of [...ANNOTATIONS, ...survey.extensions]) ajv.addKeyword(keyword);
  try {
    const validate = ajv.compile(schema as Record<string, unknown> | boolean);
    return (value) => (validate(value) === true ? [] : violationsOf(validate.errors));
  } catch (error) {
    if (error instanceof UnsupportedPattern) throw error;
    throw new InvalidSchema((error as Error).message.slice(0, 300).toWellFormed());
  }
}

function options(strictness: Strictness): Options {
  const strict = strictness === "contract";
  return {
    strictSchema: strict,
    strictTypes: strict,
    strictNumbers: true,
    // What these two refuse is valid and means one thing only.
    strictTuples: false,
    strictRequired: false,
    allowUnionTypes: true,
    allowMatchingProperties: true,
    ownProperties: true,
    logger: false,
    // Checked before, by an instance that is compiled once; a fresh one would take 15 ms for its meta-schema.
    meta: false,
    validateSchema: false,
    code: { regExp: Object.assign(linearRegExp, { code: "linearRegExp" }) },
  };
}

function linearRegExp(pattern: string, flags: string): { test(text: string): boolean } {
  return compilePattern(pattern, flags.includes("u") ? "u" : "");
}

function dialectOf(schema: unknown, dialect: Dialect): Dialect {
  const id =
    typeof schema === "object" && schema !== null && "$schema" in schema ? schema.$schema : undefined;
  if (id === undefined) return dialect;
  const known = typeof id === "string" ? id.replace(/#$/, "") : "";
  const named = Object.hasOwn(DIALECT_IDS, known) ? DIALECT_IDS[known] : undefined;
  if (named === undefined) throw new InvalidSchema("$schema names neither draft-07 nor 2020-12");
  return named;
}

const metaOptions: Options = { strict: false, validateFormats: false, logger: false };
const META: Record<Dialect, { id: string; create: () => Ajv }> = {
  "draft-07": { id: "http://json-schema.org/draft-07/schema", create: () => new Ajv(metaOptions) },
  "2020-12": { id: "https://json-schema.org/draft/2020-12/schema", create: () => new Ajv2020(metaOptions) },
};
const metaInstances = new Map<Dialect, Ajv>();

function metaFault(schema: unknown, dialect: Dialect): string | undefined {
  const { id, create } = META[dialect];
  const ajv = metaInstances.get(dialect) ?? create();
  metaInstances.set(dialect, ajv);
  if (ajv.validate(id, schema) === true) return undefined;
  return ajv.errorsText(ajv.errors, { dataVar: "schema" });
}

function violationsOf(errors: ErrorObject[] | null | undefined): Violation[] {
  return (errors ?? []).slice(0, MAX_VIOLATIONS).map(({ instancePath, message, keyword }) => ({
    path: instancePath.slice(0, 512).toWellFormed(),
    message: (message ?? keyword).slice(0, 512).toWellFormed(),
  }));
}

/** Violations as one text, as Ajv writes them. */
export function violationsText(violations: readonly Violation[]): string {
  return violations.map(({ path, message }) => `data${path} ${message}`).join(", ");
}
