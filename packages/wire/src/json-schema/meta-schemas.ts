import { Ajv, type AnySchemaObject, type KeywordDefinition } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";

/** The drafts of JSON Schema that the platform supports. */
export type Dialect = "draft-07" | "2020-12";

interface Draft {
  /** The `$id` of the draft's meta-schema. It has no empty fragment (`#`) at its end. */
  readonly id: string;
  readonly create: () => Ajv;
}

const OPTIONS = { strict: false, validateFormats: false, logger: false } as const;
const DRAFTS: Record<Dialect, Draft> = {
  "draft-07": { id: "http://json-schema.org/draft-07/schema", create: () => new Ajv(OPTIONS) },
  "2020-12": { id: "https://json-schema.org/draft/2020-12/schema", create: () => new Ajv2020(OPTIONS) },
};

const DIALECT_IDS: Record<string, Dialect> = {
  "http://json-schema.org/draft-07/schema": "draft-07",
  "https://json-schema.org/draft-07/schema": "draft-07",
  "https://json-schema.org/draft/2020-12/schema": "2020-12",
  "http://json-schema.org/draft/2020-12/schema": "2020-12",
};

/**
 * Ajv instances that contain the meta-schemas of Ajv's package. Each meta-schema is compiled once per process or
 * thread, which takes 15 ms.
 */
const instances = new Map<Dialect, Ajv>();

function instanceOf(dialect: Dialect): Ajv {
  const instance = instances.get(dialect);
  if (instance !== undefined) return instance;
  const ajv = DRAFTS[dialect].create();
  instances.set(dialect, ajv);
  return ajv;
}

/** Returns the draft that a `$schema` names; undefined if it names no supported draft. */
export function dialectNamed(id: unknown): Dialect | undefined {
  const plain = typeof id === "string" ? id.replace(/#$/, "") : "";
  return Object.hasOwn(DIALECT_IDS, plain) ? DIALECT_IDS[plain] : undefined;
}

/** Returns the violations of the draft's meta-schema as one text; undefined for a valid schema. */
export function metaFault(schema: unknown, dialect: Dialect): string | undefined {
  const ajv = instanceOf(dialect);
  if (ajv.validate(DRAFTS[dialect].id, schema) === true) return undefined;
  return ajv.errorsText(ajv.errors, { dataVar: "schema" });
}

/** Returns the meta-schema of a draft, and the meta-schemas of its vocabularies. */
export function metaSchemasOf(dialect: Dialect): readonly AnySchemaObject[] {
  return Object.values(instanceOf(dialect).schemas)
    .flatMap((entry) => (typeof entry?.schema === "object" ? [entry.schema] : []))
    .filter(({ $id }) => typeof $id === "string" && draftOf($id) === dialect);
}

/**
 * Returns `$dynamicAnchor` and `$dynamicRef`, for an Ajv instance of draft-07 that also reads the meta-schema of draft
 * 2020-12. Ajv evaluates both keywords before `$ref`.
 */
export function dynamicKeywords(): KeywordDefinition[] {
  return ["$dynamicAnchor", "$dynamicRef"].flatMap((keyword) => {
    const definition = instanceOf("2020-12").getKeyword(keyword);
    return typeof definition === "object" ? [{ ...definition, before: "$ref" }] : [];
  });
}

/** Returns the draft whose meta-schema or vocabulary has this address; undefined for any other address. */
export function draftOf(address: string): Dialect | undefined {
  if (address.startsWith("http://json-schema.org/draft-07/")) return "draft-07";
  return address.startsWith("https://json-schema.org/draft/2020-12/") ? "2020-12" : undefined;
}
