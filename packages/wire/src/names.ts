import {
  type DescEnum,
  type DescField,
  type DescFile,
  type DescMessage,
  type DescOneof,
  getOption,
} from "@bufbuild/protobuf";
import {
  EnumWords,
  Naming,
  type WireField,
  type WireFile,
  type WireOneof,
  wire_enum_value,
  wire_field,
  wire_file,
  wire_message,
  wire_oneof,
} from "@depute/contracts/depute/wire/v1/wire_options_pb";

/** Returns the wire options of a contract's file. */
export const fileOptions = (file: DescFile): WireFile => getOption(file, wire_file);
export const fieldOptions = (field: DescField): WireField => getOption(field, wire_field);
export const oneofOptions = (oneof: DescOneof): WireOneof => getOption(oneof, wire_oneof);
export const isInline = (message: DescMessage): boolean => getOption(message, wire_message).inline;

/**
 * Whether a field belongs to a oneof with a tag. The JSON of such a field is merged into the object that contains the
 * oneof.
 */
export function isTagged(field: DescField): boolean {
  return field.oneof !== undefined && oneofOptions(field.oneof).tag !== "";
}

/** Returns the JSON member name of a field. */
export function wireName(field: DescField): string {
  const { name } = fieldOptions(field);
  if (name !== "") return name;
  return fileOptions(field.parent.file).naming === Naming.SNAKE ? field.name : field.jsonName;
}

/** Returns the word with which the tag selects a oneof member. */
export function tagWord(field: DescField): string {
  const { name } = fieldOptions(field);
  return name === "" ? toWord(field.name, field.parent.file) : name;
}

/** Returns an enum's words by number. Zero means "unspecified" and has no word, unless the contract gives it one. */
export function enumWords(type: DescEnum): Map<number, string> {
  const words = new Map<number, string>();
  for (const value of type.values) {
    const { name } = getOption(value, wire_enum_value);
    if (name !== "") words.set(value.number, name);
    else if (value.number !== 0) {
      words.set(value.number, toWord(value.name.slice(type.sharedPrefix?.length ?? 0), type.file));
    }
  }
  return words;
}

function toWord(name: string, file: DescFile): string {
  return fileOptions(file).enumWords === EnumWords.UPPER ? name.toUpperCase() : name.toLowerCase();
}
