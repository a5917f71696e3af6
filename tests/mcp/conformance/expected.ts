import type { SuiteRevision } from "./suite.ts";

/** The number of the suite's server scenarios in each revision. */
export const SCENARIOS: Readonly<Record<SuiteRevision, number>> = {
  "2025-06-18": 27,
  "2025-11-25": 33,
  "2026-07-28": 40,
};

/** Scenarios that a server of 2025-11-25 behind Depute fails for a client of each revision, with the reasons. */
export const EARLIER_SERVER_DIFFERENCES: Readonly<
  Record<Exclude<SuiteRevision, "2025-06-18">, Readonly<Record<string, string>>>
> = {
  "2025-11-25": {},
  "2026-07-28": {
    "input-required-result-basic-elicitation":
      "an earlier server names no keys for its requests, and the scenario expects the fixture's own",
    "input-required-result-capability-check":
      "an earlier server learns the capabilities at its start, and the fixture has no request left",
    "server-stateless": "an earlier server has no error for a capability that the client did not declare",
  },
};

/** Scenarios that a server behind Depute fails, with the reasons. The test fails if one of them passes. */
export const DIFFERENCES: Readonly<Record<SuiteRevision, Readonly<Record<string, string>>>> = {
  "2025-06-18": {},
  "2025-11-25": {},
  "2026-07-28": {},
};

/** Scenarios that need a fixture that Depute's own `/mcp` does not have, with the fixture. */
export const OWN_NEEDS_FIXTURE: Readonly<Record<string, string>> = {
  "completion-complete": "completion of the prompt test_prompt_with_arguments",
  "elicitation-sep1034-defaults": "test_elicitation_sep1034_defaults",
  "elicitation-sep1330-enums": "test_elicitation_sep1330_enums",
  "http-custom-header-server-validation": "a tool with x-mcp-header",
  "input-required-result-basic-elicitation": "test_input_required_result_elicitation",
  "input-required-result-basic-list-roots": "test_input_required_result_list_roots",
  "input-required-result-basic-sampling": "test_input_required_result_sampling",
  "input-required-result-capability-check": "test_input_required_result_capabilities",
  "input-required-result-multi-round": "test_input_required_result_multi_round",
  "input-required-result-multiple-input-requests": "test_input_required_result_multiple_inputs",
  "input-required-result-non-tool-request": "test_input_required_result_prompt",
  "input-required-result-request-state": "test_input_required_result_request_state",
  "input-required-result-result-type": "test_input_required_result_elicitation",
  "input-required-result-tampered-state": "test_input_required_result_tampered_state",
  "json-schema-2020-12": "json_schema_2020_12_tool",
  "prompts-get-embedded-resource": "test_prompt_with_embedded_resource",
  "prompts-get-simple": "test_simple_prompt",
  "prompts-get-with-args": "test_prompt_with_arguments",
  "prompts-get-with-image": "test_prompt_with_image",
  "resources-read-binary": "test://static-binary",
  "resources-read-text": "test://static-text",
  "resources-subscribe": "test://watched-resource",
  "resources-templates-read": "test://template/{id}/data",
  "resources-unsubscribe": "test://watched-resource",
  "server-stateless": "test_missing_capability, test_streaming_elicitation and test_logging_tool",
  "tools-call-audio": "test_audio_content",
  "tools-call-elicitation": "test_elicitation",
  "tools-call-embedded-resource": "test_embedded_resource",
  "tools-call-error": "test_error_handling",
  "tools-call-image": "test_image_content",
  "tools-call-mixed-content": "test_multiple_content_types",
  "tools-call-sampling": "test_sampling",
  "tools-call-simple-text": "test_simple_text",
  "tools-call-with-logging": "test_tool_with_logging",
  "tools-call-with-progress": "test_tool_with_progress",
};
