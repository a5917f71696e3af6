import { create, createFileRegistry, setExtension } from "@bufbuild/protobuf";
import type { GenMessage, GenService } from "@bufbuild/protobuf/codegenv2";
import {
  FieldOptionsSchema,
  FileDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  MethodOptionsSchema,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import {
  FieldRulesSchema,
  field as fieldRules,
  file_buf_validate_validate,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import type { ConnectRouter } from "@connectrpc/connect";
import {
  file_depute_rpc_v1_method_options,
  Role,
  roles,
} from "@depute/contracts/depute/rpc/v1/method_options_pb";

/**
 * Defines a service with one unary method, whose request has a validation rule. Every role may call it. The contract is built here and
 * not in `proto/`, so that it is not public.
 */

type Ping = GenMessage<{ $typeName: "depute.bench.Ping"; text: string }>;

const rules = create(FieldOptionsSchema);
setExtension(
  rules,
  fieldRules,
  create(FieldRulesSchema, { type: { case: "string", value: { maxLen: 20n } } }),
);

const methodOptions = create(MethodOptionsSchema);
setExtension(methodOptions, roles, [Role.ANY]);

const registry = createFileRegistry(
  create(FileDescriptorProtoSchema, {
    name: "depute/bench/ping.proto",
    package: "depute.bench",
    syntax: "proto3",
    dependency: ["buf/validate/validate.proto", "depute/rpc/v1/method_options.proto"],
    messageType: [
      {
        name: "Ping",
        field: [
          {
            name: "text",
            jsonName: "text",
            number: 1,
            label: Label.OPTIONAL,
            type: Type.STRING,
            options: rules,
          },
        ],
      },
    ],
    service: [
      {
        name: "PingService",
        method: [
          {
            name: "Ping",
            inputType: ".depute.bench.Ping",
            outputType: ".depute.bench.Ping",
            options: methodOptions,
          },
        ],
      },
    ],
  }),
  (name) =>
    name === "buf/validate/validate.proto" ? file_buf_validate_validate : file_depute_rpc_v1_method_options,
);

export const PingService = registry.getService("depute.bench.PingService") as unknown as GenService<{
  ping: { methodKind: "unary"; input: Ping; output: Ping };
}>;

export const PING_PATH = "/depute.bench.PingService/Ping";

/** Answers every call at once with an empty message. */
export function pingRoutes(router: ConnectRouter): void {
  router.service(PingService, { ping: () => ({}) });
}
