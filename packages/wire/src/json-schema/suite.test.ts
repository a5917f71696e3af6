import { Ajv } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { describe, expect, test } from "vitest";
import { compileSchema, type Strictness } from "./compile.ts";
import type { Dialect } from "./meta-schemas.ts";
import { hasSuite, suiteOf } from "./testing/suite.ts";

/** Whether a value is valid; undefined if the schema was refused, or if its recursion did not end. */
type Verdict = boolean | undefined;
type Validate = (value: unknown) => Verdict;

const refused: Validate = () => undefined;

function platformValidator(schema: unknown, dialect: Dialect, strictness: Strictness): Validate {
  try {
    const compiled = compileSchema(schema, dialect, strictness);
    return bounded((value) => compiled(value).length === 0);
  } catch {
    return refused;
  }
}

function bounded(validate: Validate): Validate {
  return (value) => {
    try {
      return validate(value);
    } catch (error) {
      if (error instanceof RangeError) return undefined;
      throw error;
    }
  };
}

/**
 * Returns a validator by Ajv itself, with the same strictness and Ajv's own meta-schemas. The validator loads
 * no remote schemas.
 */
function ajvValidator(schema: unknown, dialect: Dialect, strictness: Strictness): Validate {
  const isStrict = strictness === "contract";
  const Class = dialect === "2020-12" ? Ajv2020 : Ajv;
  const ajv = new Class({
    strictSchema: isStrict,
    strictTypes: isStrict,
    strictTuples: false,
    strictRequired: false,
    allowUnionTypes: true,
    allowMatchingProperties: true,
    validateSchema: false,
    logger: false,
  });
  addFormats.default(ajv);
  // Skips a schema with another meta-schema, because Ajv would load that meta-schema from the network.
  const { $schema } = Object(schema) as { $schema?: string };
  if ($schema !== undefined && ajv.schemas[$schema.replace(/#$/, "")] === undefined) return refused;
  try {
    const validate = ajv.compile(schema as Record<string, unknown>);
    return bounded((value) => validate(value) === true);
  } catch {
    return refused;
  }
}

const INHERITED = "Ajv takes members that every object inherits for members of the value";
const ANNOTATION = "no check of this format ships with ajv-formats, so it is an annotation";
const REMOTES = "no reference leads outside a schema";

/**
 * Cases in which the platform and Ajv differ for the strictness `plain`, with the reasons. For `contract` they never
 * differ.
 */
const DIFFERENCES: Readonly<Record<string, string>> = {
  "properties.json: properties whose names are Javascript object property names: none of the properties mentioned":
    INHERITED,
  "required.json: required properties whose names are Javascript object property names: none of the properties mentioned":
    INHERITED,
  "required.json: required properties whose names are Javascript object property names: __proto__ present":
    INHERITED,
  "required.json: required properties whose names are Javascript object property names: toString present":
    INHERITED,
  "required.json: required properties whose names are Javascript object property names: constructor present":
    INHERITED,
};

/** Files in which the platform and Ajv both differ from the suite, with the reasons. */
const SHORTFALLS: Readonly<Record<Dialect, Readonly<Record<string, string>>>> = {
  "draft-07": {
    "optional/content.json": "contentEncoding and contentMediaType are annotations",
    "optional/cross-draft.json": REMOTES,
    "optional/float-overflow.json": "the division overflows a double",
    "optional/format/idn-email.json": ANNOTATION,
    "optional/format/idn-hostname.json": ANNOTATION,
    "optional/format/iri-reference.json": ANNOTATION,
    "optional/format/iri.json": ANNOTATION,
    "optional/unknownKeyword.json": "Ajv takes an $id below an unknown keyword for one",
    "ref.json": "Ajv lets the keywords beside a $ref count, as later drafts do",
    "refRemote.json": REMOTES,
  },
  "2020-12": {
    "dynamicRef.json": "Ajv resolves $dynamicRef within one schema resource, and by `#name` alone",
    "format.json": "known formats are checked; in 2020-12 they may be annotations",
    "optional/cross-draft.json": REMOTES,
    "optional/dynamicRef.json": "Ajv resolves $dynamicRef within one schema resource",
    "optional/float-overflow.json": "the division overflows a double",
    "optional/format-assertion.json": "a custom meta-schema would be a remote",
    "optional/format/ecmascript-regex.json": "ajv-formats reads an expression without the flag u",
    "optional/format/email.json": "ajv-formats supports neither quoted local parts nor address literals",
    "optional/format/idn-email.json": ANNOTATION,
    "optional/format/idn-hostname.json": ANNOTATION,
    "optional/format/iri-reference.json": ANNOTATION,
    "optional/format/iri.json": ANNOTATION,
    "optional/unknownKeyword.json": "Ajv takes an $id below an unknown keyword for one",
    "ref.json": "Ajv does not end on a $ref to an embedded resource that has a $ref of its own",
    "refRemote.json": REMOTES,
    "unevaluatedItems.json": "Ajv does not note items that `contains` or an `if` alone evaluated",
    "unevaluatedProperties.json": "Ajv does not note members that an `if` alone evaluated",
    "vocabulary.json": "a custom meta-schema would be a remote",
  },
};

function casesOf(dialect: Dialect, strictness: Strictness) {
  return suiteOf(dialect).flatMap((group) => {
    const [ours, theirs] = [platformValidator, ajvValidator].map((validate) =>
      validate(group.schema, dialect, strictness),
    );
    return group.tests.map((test) => ({
      file: group.file,
      name: `${group.file}: ${group.description}: ${test.description}`,
      valid: test.valid,
      ours: ours?.(test.data),
      theirs: theirs?.(test.data),
    }));
  });
}

const casesByKey = new Map<string, ReturnType<typeof casesOf>>();

describe.skipIf(!hasSuite && process.env.CI !== "true").each<[Dialect, Strictness]>([
  ["draft-07", "plain"],
  ["draft-07", "contract"],
  ["2020-12", "plain"],
  ["2020-12", "contract"],
])("the JSON Schema Test Suite in %s, %s", (dialect, strictness) => {
  const cases = () => {
    const key = `${dialect} ${strictness}`;
    const known = casesByKey.get(key) ?? casesOf(dialect, strictness);
    casesByKey.set(key, known);
    return known;
  };

  test("the compiler passes at least as many cases as Ajv", { timeout: 120_000 }, () => {
    const right = (validator: "ours" | "theirs") =>
      cases().filter((each) => each[validator] === each.valid).length;
    expect(right("theirs")).toBeGreaterThan(300);
    expect(right("ours")).toBeGreaterThanOrEqual(right("theirs"));
  });

  test("each difference from Ajv is listed with its reason, and no other", () => {
    const differing = cases().filter(({ ours, theirs }) => ours !== theirs);
    const listed = strictness === "plain" ? Object.keys(DIFFERENCES) : [];
    expect(differing.map(({ name }) => name).sort()).toEqual(listed.sort());
  });

  if (strictness === "plain") {
    test("each file with a difference from the suite is listed with its reason, and no other", () => {
      const files = cases().flatMap(({ file, ours, valid }) => (ours === valid ? [] : [file]));
      expect([...new Set(files)].sort()).toEqual(Object.keys(SHORTFALLS[dialect]).sort());
    });
  }
});
