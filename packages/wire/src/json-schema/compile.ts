import { Ajv, type ErrorObject, type Options } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { type SchemaSurvey, surveySchema } from "./limits.ts";
import { type Dialect, dialectNamed, dynamicKeywords, metaFault, metaSchemasOf } from "./meta-schemas.ts";
import { compilePattern, UnsupportedPattern } from "./patterns.ts";
import { withProtoMembers } from "./proto-members.ts";

/**
 * The strictness with which a schema is read. `contract` is Ajv's strict mode, as DelegateOS 6.2 requires. This mode
 * refuses misspelt keywords and bounds without a type, because a schema with such a fault would accept every value.
 * `plain` follows JSON Schema, where unknown keywords are annotations, because agents' schemas contain many unknown
 * keywords. In both modes, unknown `format`s and members that begin with `x-` are annotations. `default`, `examples`
 * and similar keywords have no effect.
 */
export type Strictness = "contract" | "plain";

/** Thrown for a schema that the platform refuses. */
export class InvalidSchema extends Error {
  override readonly name = "InvalidSchema";
}

/** One violation of a schema by a value. */
export interface Violation {
  /** JSON pointer to the faulty part of the value. */
  path: string;
  message: string;
  /** The unexpected member; set only if the violation is an unexpected member. */
  member?: string;
}

/** Maximum number of violations that a report lists. */
export const MAX_VIOLATIONS = 20;

/**
 * Returns the violations of a value; an empty array for a valid value. Throws RangeError for a schema with endless
 * recursion.
 */
export type CompiledSchema = (value: unknown) => Violation[];

const ANNOTATIONS = ["example", "externalDocs", "xml"];

/**
 * Compiles an untrusted schema. Ajv treats schemas like trusted code, so guards are needed. Each schema has its own Ajv
 * instance, so tenants never share an `$id`. Patterns run in linear time. Inherited members of a value are ignored.
 * References to other documents lead only to the two bundled meta-schemas and their vocabularies. Run this function,
 * and the function that it returns, in a worker thread, to bound time and memory.
 *
 * @param dialect the draft of a schema without `$schema`
 * @throws InvalidSchema, UnsupportedPattern
 */
export function compileSchema(schema: unknown, dialect: Dialect, strictness: Strictness): CompiledSchema {
  const survey = surveySchema(schema);
  if ("problem" in survey) throw new InvalidSchema(survey.problem);
  const draft = dialectOf(schema, dialect);
  const fault = metaFault(schema, draft);
  if (fault !== undefined) throw new InvalidSchema(fault);
  const complete = withProtoMembers(schema);
  if (complete === undefined)
    throw new InvalidSchema("a rule for the member __proto__ is supported in properties only; move it there");
  return compileWith(instanceFor(survey, draft, strictness), complete);
}

/**
 * Compiles a trusted schema of draft 2020-12 that ships with the platform, such as a protocol's published schema. No
 * limits apply. Strict mode applies, with one exception: the schema may leave out `type` beside other keywords.
 *
 * @throws InvalidSchema, UnsupportedPattern
 */
export function compilePublished(schema: unknown): CompiledSchema {
  const fault = metaFault(schema, "2020-12");
  if (fault !== undefined) throw new InvalidSchema(fault);
  const ajv = new Ajv2020({ ...options("contract"), strictTypes: false });
  addFormats.default(ajv);
  for (const meta of metaSchemasOf("2020-12")) ajv.addSchema(meta, undefined, true, false);
  return compileWith(ajv, schema);
}

function compileWith(ajv: Ajv, schema: unknown): CompiledSchema {
  try {
    const validate = ajv.compile(schema as Record<string, unknown> | boolean);
    return (value) => (validate(value) === true ? [] : violationsOf(validate.errors));
  } catch (error) {
    if (error instanceof UnsupportedPattern) throw error;
    throw new InvalidSchema((error as Error).message.slice(0, 300).toWellFormed());
  }
}

function instanceFor(survey: SchemaSurvey, draft: Dialect, strictness: Strictness): Ajv {
  const isMixed = draft === "draft-07" && survey.metaSchemas.has("2020-12");
  if (isMixed && survey.hasDynamics)
    throw new InvalidSchema("$dynamicRef and $dynamicAnchor need draft 2020-12; name it in $schema");
  const settings = options(strictness);
  const ajv =
    draft === "2020-12"
      ? new Ajv2020(settings)
      : new Ajv(isMixed ? { ...settings, dynamicRef: true } : settings);
  if (isMixed) ajv.addVocabulary(dynamicKeywords());
  addFormats.default(ajv);
  for (const format of survey.formats) {
    if (format in Object.prototype)
      throw new InvalidSchema("a format of that name is not supported; choose another name");
    if (!Object.hasOwn(ajv.formats, format)) ajv.addFormat(format, true);
  }
  for (const keyword of [...ANNOTATIONS, ...survey.extensions]) ajv.addKeyword(keyword);
  for (const referred of survey.metaSchemas) {
    for (const meta of metaSchemasOf(referred)) {
      // Adds the bundled meta-schema, unless the schema contains its own copy of the meta-schema.
      if (!survey.ids.has(String(meta.$id).replace(/#$/, ""))) ajv.addSchema(meta, undefined, true, false);
    }
  }
  return ajv;
}

function options(strictness: Strictness): Options {
  const strict = strictness === "contract";
  return {
    strictSchema: strict,
    strictTypes: strict,
    strictNumbers: true,
    // Both strict options are off, because the constructs that these options refuse are valid and unambiguous.
    strictTuples: false,
    strictRequired: false,
    allowUnionTypes: true,
    allowMatchingProperties: true,
    ownProperties: true,
    logger: false,
    // Ajv's own check is off, because metaFault has checked the schema. Each Ajv instance would spend 15 ms on
    // compiling the meta-schema.
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
  const declaredDialect = dialectNamed(id);
  if (declaredDialect === undefined)
    throw new InvalidSchema("$schema names neither draft-07 nor 2020-12; name one of them");
  return declaredDialect;
}

function violationsOf(errors: ErrorObject[] | null | undefined): Violation[] {
  return (errors ?? []).slice(0, MAX_VIOLATIONS).map(({ instancePath, message, keyword, params }) => ({
    path: instancePath.slice(0, 512).toWellFormed(),
    message: (message ?? keyword).slice(0, 512).toWellFormed(),
    ...(typeof params.additionalProperty === "string"
      ? { member: params.additionalProperty.slice(0, 64) }
      : {}),
  }));
}

/** Joins violations to one text in Ajv's wording. */
export function violationsText(violations: readonly Violation[]): string {
  return violations.map(({ path, message }) => `data${path} ${message}`).join(", ");
}
