import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  create,
  createFileRegistry,
  type DescMessage,
  type Message,
  type MessageShape,
} from "@bufbuild/protobuf";
import {
  type FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";

const SCALARS: Readonly<Record<string, Type>> = {
  string: Type.STRING,
  bytes: Type.BYTES,
  bool: Type.BOOL,
  int32: Type.INT32,
  int64: Type.INT64,
  float: Type.FLOAT,
};

/**
 * The fields of the published nekte.proto by number. The test has its own copy, so that tests use a stock client, not the platform's contract. `*` marks a repeated field, `|` a member of the only oneof. No field has presence.
 */
const MESSAGES: Readonly<Record<string, string>> = {
  TokenBudget: "max_tokens:int32 detail_level:string",
  CostHint: "avg_ms:int32 avg_tokens:int32",
  CapabilityRef: "id:string cat:string h:string",
  CapabilitySummary: "id:string cat:string h:string desc:string cost:CostHint",
  CapabilityFull:
    "id:string cat:string h:string desc:string cost:CostHint input_schema:bytes output_schema:bytes examples:Example*",
  Example: "input:bytes output:bytes",
  ContextPermissions: "forward:bool persist:bool derive:bool",
  ContextEnvelope:
    "id:string data:bytes compression:string permissions:ContextPermissions ttl_s:int32 budget_hint:int32",
  MultiLevelResult: "minimal:string compact:bytes full:bytes",
  ResultMeta: "ms:int32 tokens_used:int32",
  DiscoverFilter: "category:string query:string id:string top_k:int32 threshold:float",
  DiscoverRequest: "level:int32 filter:DiscoverFilter",
  DiscoverResponse:
    "agent:string version:string refs:CapabilityRef* summaries:CapabilitySummary* schemas:CapabilityFull*",
  InvokeRequest: "cap:string h:string input:bytes budget:TokenBudget",
  InvokeResponse: "output:bytes resolved_level:string meta:ResultMeta error:InvokeError",
  InvokeError: "code:int32 message:string current_hash:string schema:CapabilityFull",
  Task: "id:string desc:string timeout_ms:int32 budget:TokenBudget",
  DelegateRequest: "task:Task context:ContextEnvelope",
  DelegateEvent:
    "progress:ProgressEvent| partial:PartialEvent| complete:CompleteEvent| error:ErrorEvent| cancelled:CancelledEvent| " +
    "suspended:SuspendedEvent| resumed:ResumedEvent| status_change:StatusChangeEvent|",
  ProgressEvent: "processed:int32 total:int32 message:string",
  PartialEvent: "output:bytes resolved_level:string",
  CompleteEvent: "task_id:string output:MultiLevelResult meta:ResultMeta",
  ErrorEvent: "task_id:string code:int32 message:string",
  CancelledEvent: "task_id:string reason:string previous_status:string",
  SuspendedEvent: "task_id:string checkpoint_available:bool",
  ResumedEvent: "task_id:string from_checkpoint:bool",
  StatusChangeEvent: "task_id:string from_status:string to_status:string reason:string",
  ContextRequest: "action:string envelope:ContextEnvelope",
  ContextResponse: "id:string status:string envelope:ContextEnvelope",
  VerifyRequest: "task_id:string checks:string* budget:TokenBudget",
  VerifyResponse: "task_id:string checks:string* status:string data:bytes",
  TaskCancelRequest: "task_id:string reason:string",
  TaskResumeRequest: "task_id:string budget:TokenBudget",
  TaskStatusRequest: "task_id:string",
  TaskLifecycleResponse: "task_id:string status:string previous_status:string",
  TaskStatusResponse:
    "task_id:string status:string progress_processed:int32 progress_total:int32 checkpoint_available:bool " +
    "created_at:int64 updated_at:int64",
};

const METHODS: Readonly<Record<string, string>> = {
  Discover: "DiscoverRequest DiscoverResponse",
  Invoke: "InvokeRequest InvokeResponse",
  Delegate: "DelegateRequest DelegateEvent",
  Context: "ContextRequest ContextResponse",
  Verify: "VerifyRequest VerifyResponse",
  TaskCancel: "TaskCancelRequest TaskLifecycleResponse",
  TaskResume: "TaskResumeRequest TaskLifecycleResponse",
  TaskStatus: "TaskStatusRequest TaskStatusResponse",
};

function field(text: string, index: number): MessageInitShape<typeof FieldDescriptorProtoSchema> {
  const [, name = "", kind = "", mark = ""] = /^(\w+):(\w+)([*|]?)$/.exec(text) ?? [];
  const scalar = SCALARS[kind];
  return {
    name,
    number: index + 1,
    label: mark === "*" ? Label.REPEATED : Label.OPTIONAL,
    ...(scalar === undefined ? { type: Type.MESSAGE, typeName: `.nekte.v1.${kind}` } : { type: scalar }),
    ...(mark === "|" ? { oneofIndex: 0 } : {}),
  };
}

const registry = createFileRegistry(
  create(FileDescriptorProtoSchema, {
    name: "published/nekte.proto",
    package: "nekte.v1",
    syntax: "proto3",
    messageType: Object.entries(MESSAGES).map(([name, fields]) => ({
      name,
      field: fields.split(" ").map(field),
      ...(fields.includes("|") ? { oneofDecl: [{ name: "event" }] } : {}),
    })),
    service: [
      {
        name: "Nekte",
        method: Object.entries(METHODS).map(([name, types]) => {
          const [inputType = "", outputType = ""] = types.split(" ").map((type) => `.nekte.v1.${type}`);
          return { name, inputType, outputType, serverStreaming: name === "Delegate" };
        }),
      },
    ],
  }),
  () => undefined,
);

/** The service `nekte.v1.Nekte` with only the methods and fields of the published proto. */
export const PublishedNekte = (() => {
  const service = registry.getService("nekte.v1.Nekte");
  if (service === undefined) throw new Error("the published proto has a service");
  return service;
})();

// biome-ignore lint/suspicious/noExplicitAny: messages without generated types are looked at member by member
export type Untyped = MessageShape<DescMessage> & Message & Record<string, any>;
