import {
  create,
  createFileRegistry,
  type DescMessage,
  type MessageInitShape,
  setExtension,
} from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  DescriptorProtoSchema,
  FieldOptionsSchema,
  FileDescriptorProtoSchema,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  FieldDescriptorProto_Label as Label,
  MessageOptionsSchema,
  OneofOptionsSchema,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import {
  file_depute_wire_v1_wire_options,
  type WireFieldSchema,
  wire_field,
  wire_message,
  wire_oneof,
} from "@depute/contracts/depute/wire/v1/wire_options_pb";
import { describe, expect, test } from "vitest";
import { decode, WireContractError } from "./index.ts";

type Options = Omit<Exclude<MessageInitShape<typeof WireFieldSchema>, { $typeName: string }>, "$typeName">;

/** A field of a contract under test. `in` is the index of the oneof that contains the field. */
interface FieldSpec {
  name: string;
  type?: Type;
  of?: string;
  in?: number;
  list?: boolean;
  options?: Options;
}

interface More {
  oneofDecl?: ReturnType<typeof tagged>[];
  options?: ReturnType<typeof inline>;
}

function message(name: string, fields: FieldSpec[], more: More = {}): DescriptorProto {
  return create(DescriptorProtoSchema, {
    ...more,
    name,
    field: fields.map((field, at) => ({
      name: field.name,
      jsonName: field.name,
      number: at + 1,
      label: field.list ? Label.REPEATED : Label.OPTIONAL,
      type: field.type ?? (field.of === undefined ? Type.STRING : Type.MESSAGE),
      ...(field.of === undefined ? {} : { typeName: field.of }),
      ...(field.in === undefined ? {} : { oneofIndex: field.in }),
      options: optionsOf(field.options ?? {}),
    })),
  });
}

function optionsOf(options: Options) {
  const made = create(FieldOptionsSchema);
  setExtension(made, wire_field, { ...emptyOptions, ...options });
  return made;
}

const emptyOptions = {
  $typeName: "depute.wire.v1.WireField",
  name: "",
  json: false,
  extraMembers: false,
  omitEmpty: false,
} as const;

function tagged(tag: string, inherited = false) {
  const options = create(OneofOptionsSchema);
  setExtension(options, wire_oneof, { $typeName: "depute.wire.v1.WireOneof", tag, inherited });
  return { name: "union", options };
}

function inline() {
  const options = create(MessageOptionsSchema);
  setExtension(options, wire_message, { $typeName: "depute.wire.v1.WireMessage", inline: true });
  return options;
}

/** Builds a contract from messages, and returns the last message. */
function contractOf(...messages: DescriptorProto[]): DescMessage {
  const dependencies = [
    file_depute_wire_v1_wire_options,
    file_google_protobuf_struct,
    file_google_protobuf_timestamp,
  ];
  const file = create(FileDescriptorProtoSchema, {
    name: "made_up.proto",
    package: "made",
    syntax: "proto3",
    dependency: dependencies.map((each) => each.proto.name),
    messageType: messages,
  });
  const registry = createFileRegistry(file, (name) => dependencies.find((each) => each.proto.name === name));
  return registry.getMessage(`made.${messages.at(-1)?.name}`) as DescMessage;
}

describe("refuses options that contradict each other at the contract's first use", () => {
  const leaf = message("Leaf", [{ name: "note" }]);

  test.each<[string, DescriptorProto[]]>([
    ["two members of one name", [message("M", [{ name: "a" }, { name: "b", options: { name: "a" } }])]],
    [
      "two members of a oneof that accept one kind",
      [
        message(
          "M",
          [
            { name: "a", in: 0, options: { name: "x" } },
            { name: "b", in: 0, options: { name: "x" } },
          ],
          {
            oneofDecl: [tagged("")],
          },
        ),
      ],
    ],
    ["bytes that do not hold JSON", [message("M", [{ name: "a", type: Type.BYTES }])]],
    ["a message that has no form", [message("M", [{ name: "a", of: ".google.protobuf.Timestamp" }])]],
    [
      "an inline message of two fields",
      [message("M", [{ name: "a" }, { name: "b" }], { options: inline() })],
    ],
    ["an inline message of none", [message("M", [], { options: inline() })]],
    ["extra members that are no Struct", [message("M", [{ name: "a", options: { extraMembers: true } }])]],
    [
      "two collectors of extra members",
      [
        message("M", [
          { name: "a", of: ".google.protobuf.Struct", options: { extraMembers: true } },
          { name: "b", of: ".google.protobuf.Struct", options: { extraMembers: true } },
        ]),
      ],
    ],
    [
      "a tagged member that is no message",
      [message("M", [{ name: "a", in: 0 }], { oneofDecl: [tagged("t")] })],
    ],
    [
      "a tag that is also a member",
      [
        leaf,
        message("M", [{ name: "a", in: 0, of: ".made.Leaf" }, { name: "t" }], {
          oneofDecl: [tagged("t")],
        }),
      ],
    ],
    [
      "a merged member that is also the outer message's",
      [
        leaf,
        message("M", [{ name: "a", in: 0, of: ".made.Leaf" }, { name: "note" }], {
          oneofDecl: [tagged("t")],
        }),
      ],
    ],
    [
      "two words of a tag that are equal",
      [
        leaf,
        message(
          "M",
          [
            { name: "a", in: 0, of: ".made.Leaf" },
            { name: "b", in: 0, of: ".made.Leaf", options: { name: "a" } },
          ],
          { oneofDecl: [tagged("t")] },
        ),
      ],
    ],
  ])("%s", (_name, messages) => {
    expect(() => decode(contractOf(...messages), { t: "a", note: "" })).toThrow(WireContractError);
  });
});
