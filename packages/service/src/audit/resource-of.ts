import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";

/** Maximum number of characters of a resource's name. */
const MAX_NAME = 256;

/** Names of id fields that do not name a record. */
const NOT_RESOURCES: ReadonlySet<string> = new Set(["request_id"]);

/**
 * Returns the name of the record that a call is about, e.g. `tasks/t-1`: the first id in the request other than
 * `request_id`. If the request has no such id, the result is the record in the response, else the record in the
 * request, else the organization that the request names.
 *
 * @param answer absent for a refused call and for a stream
 * @returns empty if the messages name neither a record nor an organization
 */
export function resourceOf(
  input: { readonly desc: DescMessage; readonly message: Message | undefined },
  answer?: { readonly desc: DescMessage; readonly message: Message },
): string {
  const name =
    idIn(input.desc, input.message) ||
    (answer === undefined ? "" : recordIn(answer.desc, answer.message)) ||
    recordIn(input.desc, input.message) ||
    organizationIn(input.desc, input.message);
  return name.slice(0, MAX_NAME).toWellFormed();
}

/** Returns the first member `X_id` of a message that is not empty, as `Xs/ID`; empty if there is none. */
function idIn({ fields }: DescMessage, message: Message | undefined): string {
  for (const field of fields) {
    if (!isText(field) || !field.name.endsWith("_id") || NOT_RESOURCES.has(field.name)) continue;
    const id = memberOf(message, field);
    if (typeof id === "string" && id !== "") return `${pluralOf(field.name.slice(0, -"_id".length))}/${id}`;
  }
  return "";
}

/**
 * Returns the name of the first record in a message as `Xs/ID`; empty if there is none. A record is a member `X` that
 * has a member `id`.
 */
function recordIn({ fields }: DescMessage, message: Message | undefined): string {
  for (const field of fields) {
    if (field.fieldKind !== "message") continue;
    const idField = field.message.fields.find(({ name }) => name === "id");
    const record = memberOf(message, field);
    if (idField === undefined || !isText(idField) || typeof record !== "object" || record === null) continue;
    const id = memberOf(record as Message, idField);
    if (typeof id === "string" && id !== "") return `${pluralOf(field.name)}/${id}`;
  }
  return "";
}

/** Returns the member `organization` of a message as `organizations/NAME`; empty without one. */
function organizationIn({ fields }: DescMessage, message: Message | undefined): string {
  const field = fields.find((each) => isText(each) && each.name === "organization");
  const name = field && memberOf(message, field);
  return typeof name === "string" && name !== "" ? `organizations/${name}` : "";
}

/** Returns the plural of a member's name, e.g. `capabilities` for `capability`. */
function pluralOf(name: string): string {
  return name.endsWith("y") ? `${name.slice(0, -1)}ies` : `${name}s`;
}

function isText(field: DescField): boolean {
  return field.fieldKind === "scalar" && field.scalar === ScalarType.STRING;
}

function memberOf(message: Message | undefined, field: DescField): unknown {
  if (message === undefined) return undefined;
  const members = message as unknown as Record<string, unknown>;
  const { oneof } = field;
  if (oneof === undefined) return members[field.localName];
  const choice = members[oneof.localName] as { case?: string; value?: unknown } | undefined;
  return choice?.case === field.localName ? choice.value : undefined;
}
