import {
  type DescEnum,
  type DescField,
  type DescFile,
  type DescMessage,
  type DescMethod,
  type DescService,
  type JsonObject,
  type JsonValue,
  ScalarType,
} from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { limitsOf } from "./limits.ts";

/** The options of {@link openApiDocument}. */
export interface OpenApiOptions {
  readonly services: readonly DescService[];
  readonly version: string;
  /** The platform's address for clients, without a trailing slash. */
  readonly publicUrl: string;
}

/**
 * Describes the unary calls of services as OpenAPI 3.1, in the JSON form of the Connect protocol. Streams are left out,
 * because Connect frames them in binary envelopes. Descriptions are the comments in the descriptors, if there are any.
 */
export function openApiDocument({ services, version, publicUrl }: OpenApiOptions): JsonObject {
  const schemas: Record<string, JsonValue> = { "connect.Error": CONNECT_ERROR };
  const collect = new SchemaCollector(schemas);
  const unary = services.flatMap((service) =>
    service.methods.filter(({ methodKind }) => methodKind === "unary"),
  );
  return {
    openapi: "3.1.0",
    info: {
      title: "Depute",
      version,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      description:
        "The unary calls of Depute as JSON over HTTP (Connect protocol). Streams need a generated client; `/protos` has the contracts.",
    },
    servers: [{ url: publicUrl }],
    security: [{}, { bearer: [] }, { apiKey: [] }, { dpop: [], proof: [] }],
    tags: services.map((service) => ({ name: service.typeName, ...described(service) })),
    paths: Object.fromEntries(unary.map((method) => [pathOf(method), pathItem(method, collect)])),
    components: { schemas, securitySchemes: SECURITY },
  };
}

const SECURITY: JsonObject = {
  bearer: { type: "http", scheme: "bearer", description: "A configured secret." },
  apiKey: { type: "apiKey", in: "header", name: "X-API-Key", description: "The same secret as a key." },
  dpop: { type: "http", scheme: "DPoP", description: "A DelegateOS token, together with a holder proof." },
  proof: {
    type: "apiKey",
    in: "header",
    name: "DPoP",
    description: "The holder proof of this call. A retry needs a new one.",
  },
};

const CONNECT_ERROR: JsonObject = {
  type: "object",
  required: ["code"],
  properties: {
    code: { type: "string", description: "The gRPC status in snake case." },
    message: { type: "string" },
    details: {
      type: "array",
      items: {
        type: "object",
        required: ["type", "value"],
        properties: {
          type: { type: "string", description: "The message type, such as google.rpc.ErrorInfo." },
          value: { type: "string", contentEncoding: "base64", description: "The message in binary form." },
          debug: { description: "The message in JSON form." },
        },
      },
    },
  },
};

function pathOf({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`;
}

function pathItem(method: DescMethod, collect: SchemaCollector): JsonObject {
  const { parent, name, input, output } = method;
  const documentInfo = {
    tags: [parent.typeName],
    ...described(method),
    ...(method.deprecated && { deprecated: true }),
  };
  const responses = {
    "200": { description: "The response.", content: { "application/json": { schema: collect.ref(output) } } },
    default: {
      description: "A refusal, with its reason in google.rpc.ErrorInfo.",
      content: { "application/json": { schema: { $ref: "#/components/schemas/connect.Error" } } },
    },
  };
  const operationId = `${parent.typeName.replaceAll(".", "_")}_${name}`;
  const content = { "application/json": { schema: collect.ref(input) } };
  const post = { ...documentInfo, operationId, requestBody: { required: true, content }, responses };
  if (method.idempotency !== Level.NO_SIDE_EFFECTS) return { post };
  const parameters: JsonValue = [
    { name: "connect", in: "query", schema: { const: "v1" } },
    { name: "encoding", in: "query", required: true, schema: { const: "json" } },
    { name: "message", in: "query", required: true, content },
  ];
  return { post, get: { ...documentInfo, operationId: `${operationId}_get`, parameters, responses } };
}

/** The JSON Schema of the ProtoJSON form, for each of protobuf's well-known types. */
const WELL_KNOWN: Readonly<Record<string, JsonObject>> = {
  "google.protobuf.Timestamp": { type: "string", format: "date-time" },
  "google.protobuf.Duration": { type: "string", pattern: "^-?[0-9]+([.][0-9]{1,9})?s$" },
  "google.protobuf.Struct": { type: "object" },
  "google.protobuf.Value": {},
  "google.protobuf.ListValue": { type: "array" },
  "google.protobuf.Any": {
    type: "object",
    required: ["@type"],
    properties: { "@type": { type: "string" } },
  },
};

const INTEGERS: ReadonlySet<ScalarType> = new Set([
  ScalarType.INT32,
  ScalarType.SINT32,
  ScalarType.SFIXED32,
  ScalarType.UINT32,
  ScalarType.FIXED32,
]);

const LONG_INTEGERS: ReadonlySet<ScalarType> = new Set([
  ScalarType.INT64,
  ScalarType.SINT64,
  ScalarType.SFIXED64,
  ScalarType.UINT64,
  ScalarType.FIXED64,
]);

/** Collects the schemas of all messages that the calls use. Each schema is included once. */
class SchemaCollector {
  readonly #schemas: Record<string, JsonValue>;

  constructor(schemas: Record<string, JsonValue>) {
    this.#schemas = schemas;
  }

  /** Returns a reference to the schema of a message, or the schema itself for a well-known type. */
  ref(desc: DescMessage | DescEnum): JsonObject {
    const wellKnown = WELL_KNOWN[desc.typeName];
    if (wellKnown !== undefined) return wellKnown;
    if (!(desc.typeName in this.#schemas)) {
      // Registers an empty schema before the conversion of the members, because a message may refer to itself.
      this.#schemas[desc.typeName] = {};
      this.#schemas[desc.typeName] = desc.kind === "enum" ? enumSchema(desc) : this.#message(desc);
    }
    return { $ref: `#/components/schemas/${desc.typeName}` };
  }

  #message(desc: DescMessage): JsonObject {
    const properties = Object.fromEntries(desc.fields.map((field) => [field.jsonName, this.#field(field)]));
    const required = desc.fields.filter((field) => limitsOf(field).required).map(({ jsonName }) => jsonName);
    return {
      type: "object",
      ...described(desc),
      properties,
      ...(required.length > 0 && { required }),
    };
  }

  #field(field: DescField): JsonObject {
    const { outer, inner } = limitsOf(field);
    const about = { ...described(field), ...(field.deprecated && { deprecated: true }) };
    switch (field.fieldKind) {
      case "list":
        return { ...about, type: "array", items: { ...this.#element(field), ...inner }, ...outer };
      case "map": {
        const values = field.mapKind === "scalar" ? scalarSchema(field.scalar) : this.#reference(field);
        return { ...about, type: "object", additionalProperties: { ...values, ...inner }, ...outer };
      }
      case "scalar":
        return { ...about, ...scalarSchema(field.scalar), ...outer };
      default:
        return { ...this.#reference(field), ...about, ...outer };
    }
  }

  #element(field: DescField & { fieldKind: "list" }): JsonObject {
    return field.listKind === "scalar" ? scalarSchema(field.scalar) : this.#reference(field);
  }

  #reference({ message, enum: values }: DescField): JsonObject {
    const desc = message ?? values;
    return desc === undefined ? {} : this.ref(desc);
  }
}

function enumSchema(desc: DescEnum): JsonObject {
  return { type: "string", ...described(desc), enum: desc.values.map(({ name }) => name) };
}

function scalarSchema(scalar: ScalarType): JsonObject {
  if (INTEGERS.has(scalar)) return { type: "integer", format: "int32" };
  // ProtoJSON writes a 64-bit number as text, but reads text or a number.
  if (LONG_INTEGERS.has(scalar)) return { type: ["string", "integer"], format: "int64" };
  switch (scalar) {
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.BYTES:
      return { type: "string", contentEncoding: "base64" };
    case ScalarType.STRING:
      return { type: "string" };
    default:
      return { type: "number" };
  }
}

type Commented = DescService | DescMethod | DescMessage | DescField | DescEnum;

/**
 * Returns the comment above an element of a contract as its description; returns an empty object if there is no
 * comment.
 */
function described(desc: Commented): { description?: string } {
  const description = commentsOf(fileOf(desc)).get(pathKey(desc));
  return description === undefined ? {} : { description };
}

const comments = new WeakMap<DescFile, ReadonlyMap<string, string>>();

/** Returns the comments above the elements of a file, by the path of the element. */
function commentsOf(file: DescFile): ReadonlyMap<string, string> {
  let fileComments = comments.get(file);
  if (fileComments === undefined) {
    const { location = [] } = file.proto.sourceCodeInfo ?? {};
    fileComments = new Map(
      location
        .filter(({ leadingComments }) => leadingComments.trim() !== "")
        .map(({ path, leadingComments }) => [path.join("."), leadingComments.replace(/^ /gm, "").trim()]),
    );
    comments.set(file, fileComments);
  }
  return fileComments;
}

function fileOf(desc: Commented): DescFile {
  return desc.kind === "field" || desc.kind === "rpc" ? desc.parent.file : desc.file;
}

/** Returns the path of an element in its FileDescriptorProto, in the form that source locations use. */
function pathKey(desc: Commented): string {
  switch (desc.kind) {
    case "service":
      return `6.${desc.file.services.indexOf(desc)}`;
    case "rpc":
      return `${pathKey(desc.parent)}.2.${desc.parent.methods.indexOf(desc)}`;
    case "field":
      return `${pathKey(desc.parent)}.2.${desc.parent.proto.field.indexOf(desc.proto)}`;
    case "message":
      return desc.parent === undefined
        ? `4.${desc.file.proto.messageType.indexOf(desc.proto)}`
        : `${pathKey(desc.parent)}.3.${desc.parent.proto.nestedType.indexOf(desc.proto)}`;
    case "enum":
      return desc.parent === undefined
        ? `5.${desc.file.proto.enumType.indexOf(desc.proto)}`
        : `${pathKey(desc.parent)}.4.${desc.parent.proto.enumType.indexOf(desc.proto)}`;
  }
}
