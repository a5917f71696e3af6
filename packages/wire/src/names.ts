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
} from "@depute/contracts/depute/wire/v1/options_pb";

/** The options of a contract, read from its descriptors. */
export const fileOptions = (file: DescFile): WireFile => getOption(file, wire_file);
export const fieldOptions = (field: DescField): WireField => getOption(field, wire_field);
export const oneofOptions = (oneof: DescOneof): WireOneof => getOption(oneof, wire_oneof);
export const isInline = (message: DescMessage): boolean => getOption(message, wire_message).inline;

/** Whether a field is a member of a tagged oneof: its JSON is merged into the object that holds the oneof. */
export function isTagged(field: DescField): boolean {
  return field.oneof !== undefined && oneofOptions(field.oneof).tag !== "";
}

/** The name of a field's member in the family's JSON. */
export function wireName(field: DescField): string {
  const { name } = fieldOptions(field);
  if (name !== "") return name;
  return fileOptions(field.parent.file).naming === Naming.SNAKE ? field.name : field.jsonName;
}

/** The word of a tagged oneof's member. */
export function tagWord(field: DescField): string {
  const { name } = fieldOptions(field);
  return name === "" ? toWord(field.name, field.parent.file) : name;
}

/** An enum's words by number. Zero has none, unless the contract names it: it stands for "not given". */
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
