import { Ajv, type ErrorObject, type Options } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { type SchemaSurvey, surveySchema } from "./limits.ts";
import { type Dialect, dialectNamed, dynamicKeywords, metaFault, metaSchemasOf } from "./meta-schemas.ts";
import { compilePattern, UnsupportedPattern } from "./patterns.ts";
import { withProtoMembers } from "./proto-members.ts";

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
  /** The member that should not be there, where that is the fault. */
  member?: string;
}

/** At most so many violations are told. */
export const MAX_VIOLATIONS = 20;

/** The violations of a value; none when it fits. Throws RangeError for a schema that recurses without end. */
export type CompiledSchema = (value: unknown) => Violation[];

const ANNOTATIONS = ["example", "externalDocs", "xml"];

/**
 * Compiles a schema of a stranger. Ajv takes schemas for trusted code, so each gets an instance of its own (nothing of
 * one tenant's `$id` is seen by another), patterns run in linear time, members are only what a value has itself, and
 * no reference leads outside but to the two meta-schemas and their vocabularies, which are bundled. Time and memory are
 * the caller's business: this belongs in a worker.
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
  const complete = withProtoMembers(schema);
  if (complete === undefined)
    throw new InvalidSchema("a rule for the member __proto__ is supported in properties only");
  return compileWith(instanceFor(survey, draft, strictness), complete);
}

/**
 * Compiles a schema of draft 2020-12 that ships with the platform, such as one that a protocol publishes. It is trusted:
 * no cap holds. Authors of such schemas leave `type` out beside other keywords; everything else is strict.
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
    throw new InvalidSchema(
      "$dynamicRef and $dynamicAnchor are keywords of 2020-12, which $schema has to name",
    );
  const settings = options(strictness);
  const ajv =
    draft === "2020-12"
      ? new Ajv2020(settings)
      : new Ajv(isMixed ? { ...settings, dynamicRef: true } : settings);
  if (isMixed) ajv.addVocabulary(dynamicKeywords());
  addFormats.default(ajv);
  for (const format of survey.formats) {
    if (format in Object.prototype) throw new InvalidSchema("a format of that name is not supported");
    if (!Object.hasOwn(ajv.formats, format)) ajv.addFormat(format, true);
  }
  for (const keyword of [...ANNOTATIONS, ...survey.extensions]) ajv.addKeyword(keyword);
  for (const referred of survey.metaSchemas) {
    for (const meta of metaSchemasOf(referred)) {
      // A schema that is a copy of a meta-schema stands for itself.
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
    // What these two refuse is valid and means one thing only.
    strictTuples: false,
    strictRequired: false,
    allowUnionTypes: true,
    allowMatchingProperties: true,
    ownProperties: true,
    logger: false,
    // metaFault has checked it; a fresh instance would take 15 ms to compile its meta-schema.
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
  const named = dialectNamed(id);
  if (named === undefined) throw new InvalidSchema("$schema names neither draft-07 nor 2020-12");
  return named;
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

/** Violations as one text, as Ajv writes them. */
export function violationsText(violations: readonly Violation[]): string {
  return violations.map(({ path, message }) => `data${path} ${message}`).join(", ");
}
