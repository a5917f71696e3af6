import {
  create,
  createFileRegistry,
  type DescService,
  type Message,
  setExtension,
  toBinary,
} from "@bufbuild/protobuf";
import type { GenMessage, GenService } from "@bufbuild/protobuf/codegenv2";
import {
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
  FieldOptionsSchema,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { field as fieldRules, FieldRulesSchema, file_buf_validate_validate } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
