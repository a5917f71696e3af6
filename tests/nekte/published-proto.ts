/**
 * The names and field numbers of the published contract nekte.v1. Tests need them for a stock client that does not use
 * the platform's own contract.
 */
export const PUBLISHED_PROTO = `syntax = "proto3";

package nekte.v1;

service Nekte {
  rpc Discover (DiscoverRequest) returns (DiscoverResponse);
  rpc Invoke (InvokeRequest) returns (InvokeResponse);
  rpc Delegate (DelegateRequest) returns (stream DelegateEvent);
  rpc Context (ContextRequest) returns (ContextResponse);
  rpc Verify (VerifyRequest) returns (VerifyResponse);
  rpc TaskCancel (TaskCancelRequest) returns (TaskLifecycleResponse);
  rpc TaskResume (TaskResumeRequest) returns (TaskLifecycleResponse);
  rpc TaskStatus (TaskStatusRequest) returns (TaskStatusResponse);
}

message TokenBudget {
  int32 max_tokens = 1;
  string detail_level = 2;
}

message CostHint {
  int32 avg_ms = 1;
  int32 avg_tokens = 2;
}

message CapabilityRef {
  string id = 1;
  string cat = 2;
  string h = 3;
}

message CapabilitySummary {
  string id = 1;
  string cat = 2;
  string h = 3;
  string desc = 4;
  CostHint cost = 5;
}

message CapabilityFull {
  string id = 1;
  string cat = 2;
  string h = 3;
  string desc = 4;
  CostHint cost = 5;
  bytes input_schema = 6;
  bytes output_schema = 7;
  repeated Example examples = 8;
}

message Example {
  bytes input = 1;
  bytes output = 2;
}

message ContextPermissions {
  bool forward = 1;
  bool persist = 2;
  bool derive = 3;
}

message ContextEnvelope {
  string id = 1;
  bytes data = 2;
  string compression = 3;
  ContextPermissions permissions = 4;
  int32 ttl_s = 5;
  int32 budget_hint = 6;
}

message MultiLevelResult {
  string minimal = 1;
  bytes compact = 2;
  bytes full = 3;
}

message ResultMeta {
  int32 ms = 1;
  int32 tokens_used = 2;
}

message DiscoverFilter {
  string category = 1;
  string query = 2;
  string id = 3;
  int32 top_k = 4;
  float threshold = 5;
}

message DiscoverRequest {
  int32 level = 1;
  DiscoverFilter filter = 2;
}

message DiscoverResponse {
  string agent = 1;
  string version = 2;
  repeated CapabilityRef refs = 3;
  repeated CapabilitySummary summaries = 4;
  repeated CapabilityFull schemas = 5;
}

message InvokeRequest {
  string cap = 1;
  string h = 2;
  bytes input = 3;
  TokenBudget budget = 4;
}

message InvokeResponse {
  bytes output = 1;
  string resolved_level = 2;
  ResultMeta meta = 3;
  InvokeError error = 4;
}

message InvokeError {
  int32 code = 1;
  string message = 2;
  string current_hash = 3;
  CapabilityFull schema = 4;
}

message Task {
  string id = 1;
  string desc = 2;
  int32 timeout_ms = 3;
  TokenBudget budget = 4;
}

message DelegateRequest {
  Task task = 1;
  ContextEnvelope context = 2;
}

message DelegateEvent {
  oneof event {
    ProgressEvent progress = 1;
    PartialEvent partial = 2;
    CompleteEvent complete = 3;
    ErrorEvent error = 4;
    CancelledEvent cancelled = 5;
    SuspendedEvent suspended = 6;
    ResumedEvent resumed = 7;
    StatusChangeEvent status_change = 8;
  }
}

message ProgressEvent {
  int32 processed = 1;
  int32 total = 2;
  string message = 3;
}

message PartialEvent {
  bytes output = 1;
  string resolved_level = 2;
}

message CompleteEvent {
  string task_id = 1;
  MultiLevelResult output = 2;
  ResultMeta meta = 3;
}

message ErrorEvent {
  string task_id = 1;
  int32 code = 2;
  string message = 3;
}

message CancelledEvent {
  string task_id = 1;
  string reason = 2;
  string previous_status = 3;
}

message SuspendedEvent {
  string task_id = 1;
  bool checkpoint_available = 2;
}

message ResumedEvent {
  string task_id = 1;
  bool from_checkpoint = 2;
}

message StatusChangeEvent {
  string task_id = 1;
  string from_status = 2;
  string to_status = 3;
  string reason = 4;
}

message ContextRequest {
  string action = 1;
  ContextEnvelope envelope = 2;
}

message ContextResponse {
  string id = 1;
  string status = 2;
  ContextEnvelope envelope = 3;
}

message VerifyRequest {
  string task_id = 1;
  repeated string checks = 2;
  TokenBudget budget = 3;
}

message VerifyResponse {
  string task_id = 1;
  repeated string checks = 2;
  string status = 3;
  bytes data = 4;
}

message TaskCancelRequest {
  string task_id = 1;
  string reason = 2;
}

message TaskResumeRequest {
  string task_id = 1;
  TokenBudget budget = 2;
}

message TaskStatusRequest {
  string task_id = 1;
}

message TaskLifecycleResponse {
  string task_id = 1;
  string status = 2;
  string previous_status = 3;
}

message TaskStatusResponse {
  string task_id = 1;
  string status = 2;
  int32 progress_processed = 3;
  int32 progress_total = 4;
  bool checkpoint_available = 5;
  int64 created_at = 6;
  int64 updated_at = 7;
}
`;
