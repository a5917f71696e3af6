import { isFieldSet } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  type EnumDescriptorProto,
  type FieldDescriptorProto,
  FieldDescriptorProtoSchema,
  type FileDescriptorProto,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";

/** The keyword of each scalar type. Messages, groups and enums have a type name instead. */
const KEYWORDS: Partial<Record<Type, string>> = {
  [Type.DOUBLE]: "double",
  [Type.FLOAT]: "float",
  [Type.INT64]: "int64",
  [Type.UINT64]: "uint64",
  [Type.INT32]: "int32",
  [Type.FIXED64]: "fixed64",
  [Type.FIXED32]: "fixed32",
  [Type.BOOL]: "bool",
  [Type.STRING]: "string",
  [Type.BYTES]: "bytes",
  [Type.UINT32]: "uint32",
  [Type.SFIXED32]: "sfixed32",
  [Type.SFIXED64]: "sfixed64",
  [Type.SINT32]: "sint32",
  [Type.SINT64]: "sint64",
};

const LABELS: Record<Label, string> = {
  [Label.OPTIONAL]: "optional",
  [Label.REQUIRED]: "required",
  [Label.REPEATED]: "repeated",
};

/**
 * Prints a proto2 file descriptor as source, without comments and options. A descriptor contains no comments.
 * The only file that is printed contains the validation rules. Its options matter only to the rules' own
 * runtime.
 */
export function printProtoFile(file: FileDescriptorProto): string {
  const lines = ['syntax = "proto2";', `package ${file.package};`];
  for (const path of file.dependency) lines.push(`import "${path}";`);
  for (const one of file.enumType) printEnum(one, lines);
  for (const one of file.messageType) printMessage(one, lines);
  for (const one of file.extension) {
    lines.push(`extend ${one.extendee} {`, fieldLine(one, LABELS[one.label]), "}");
  }
  return `${lines.join("\n")}\n`;
}

function printMessage(message: DescriptorProto, lines: string[]): void {
  lines.push(`message ${message.name} {`);
  for (const one of message.enumType) printEnum(one, lines);
  for (const one of message.nestedType) if (!one.options?.mapEntry) printMessage(one, lines);
  const printed = new Set<number>();
  for (const field of message.field) {
    if (!inOneof(field)) {
      lines.push(mapLine(field, message) ?? fieldLine(field, LABELS[field.label]));
    } else if (!printed.has(field.oneofIndex)) {
      printed.add(field.oneofIndex);
      lines.push(`oneof ${message.oneofDecl[field.oneofIndex]?.name} {`);
      for (const member of message.field) {
        if (inOneof(member) && member.oneofIndex === field.oneofIndex) lines.push(fieldLine(member, ""));
      }
      lines.push("}");
    }
  }
  for (const range of message.extensionRange)
    lines.push(`extensions ${range.start} to ${rangeEnd(range.end)};`);
  for (const range of message.reservedRange) lines.push(`reserved ${range.start} to ${rangeEnd(range.end)};`);
  for (const name of message.reservedName) lines.push(`reserved "${name}";`);
  lines.push("}");
}

function printEnum(one: EnumDescriptorProto, lines: string[]): void {
  lines.push(`enum ${one.name} {`);
  for (const value of one.value) lines.push(`${value.name} = ${value.number};`);
  lines.push("}");
}

function fieldLine(field: FieldDescriptorProto, label: string): string {
  return `${label} ${KEYWORDS[field.type] ?? field.typeName} ${field.name} = ${field.number};`.trimStart();
}

function mapLine(field: FieldDescriptorProto, parent: DescriptorProto): string | undefined {
  const entry = parent.nestedType.find(
    (one) => one.options?.mapEntry && field.typeName.endsWith(`.${parent.name}.${one.name}`),
  );
  const [key, value] = entry?.field ?? [];
  if (key === undefined || value === undefined) return undefined;
  const type = (one: FieldDescriptorProto) => KEYWORDS[one.type] ?? one.typeName;
  return `map<${type(key)}, ${type(value)}> ${field.name} = ${field.number};`;
}

/**
 * Returns the last number of a range as the source states it. The descriptor states the number after it. The source has
 * `max` for the highest possible number.
 */
function rangeEnd(exclusive: number): string {
  return exclusive > 536_870_911 ? "max" : String(exclusive - 1);
}

/**
 * Whether a field belongs to a oneof. The oneof's index may be 0, so the function checks its presence and not its
 * value.
 */
function inOneof(field: FieldDescriptorProto): boolean {
  return isFieldSet(field, FieldDescriptorProtoSchema.field.oneofIndex);
}
