import {
  acceptedContent,
  fromJsonSchema,
  type InputRequests,
  type McpServer,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { Json } from "../../gateway/platform.ts";

/** A PNG image of one pixel, and an empty WAV file. */
export const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

const text = (value: string) => ({ content: [{ type: "text", text: value }] });
const embedded = (uri: string) => ({
  type: "resource",
  resource: { uri, mimeType: "text/plain", text: "an embedded resource" },
});
const image = { type: "image", data: PNG, mimeType: "image/png" };

/** Tools that answer with fixed content. */
const FIXED: Readonly<Record<string, Json>> = {
  test_simple_text: text("This is a simple text response for testing."),
  test_image_content: { content: [image] },
  test_audio_content: { content: [{ type: "audio", data: WAV, mimeType: "audio/wav" }] },
  test_embedded_resource: { content: [embedded("test://embedded-resource")] },
  test_multiple_content_types: {
    content: [{ type: "text", text: "several kinds" }, image, embedded("test://mixed-content-resource")],
  },
  test_error_handling: { ...text("This tool intentionally returns an error for testing"), isError: true },
};

const asks = (message: string, properties: Json, required: string[] = []) => ({
  method: "elicitation/create" as const,
  params: { message, requestedSchema: { type: "object" as const, properties, required } },
});
const asksText = (message: string, name: string) => asks(message, { [name]: { type: "string" } }, [name]);
const asksModel = (prompt: string) => ({
  method: "sampling/createMessage" as const,
  params: {
    messages: [{ role: "user" as const, content: { type: "text" as const, text: prompt } }],
    maxTokens: 100,
  },
});
const ROOTS = { method: "roots/list" as const, params: {} };

const DEFAULTS = {
  name: { type: "string", default: "John Doe" },
  age: { type: "integer", default: 30 },
  score: { type: "number", default: 95.5 },
  status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
  verified: { type: "boolean", default: true },
};
const options = ["option1", "option2", "option3"];
const titled = options.map((option) => ({ const: option, title: `The ${option}` }));
const ENUMS = {
  untitledSingle: { type: "string", enum: options },
  titledSingle: { type: "string", oneOf: titled },
  legacyEnum: { type: "string", enum: options, enumNames: ["One", "Two", "Three"] },
  untitledMulti: { type: "array", minItems: 1, maxItems: 3, items: { type: "string", enum: options } },
  titledMulti: { type: "array", minItems: 1, maxItems: 3, items: { anyOf: titled } },
};

/**
 * Tools that need one answer of the client, in MCP revisions before and since 2026-07-28. Each tool returns
 * its requests by key.
 */
const ASKING: Readonly<Record<string, (args: Json) => InputRequests>> = {
  test_sampling: ({ prompt }) => ({ answer: asksModel(prompt) }),
  test_elicitation: ({ message }) => ({ answer: asksText(message, "response") }),
  test_elicitation_sep1034_defaults: () => ({ answer: asks("Please review", DEFAULTS) }),
  test_elicitation_sep1330_enums: () => ({ answer: asks("Please select", ENUMS) }),
  test_missing_capability: () => ({ answer: asksModel("a word") }),
  test_streaming_elicitation: () => ({ answer: asksText("Who is it?", "name") }),
  test_input_required_result_elicitation: () => ({ user_name: asksText("What is your name?", "name") }),
  test_input_required_result_sampling: () => ({ capital_question: asksModel("the capital of France") }),
  test_input_required_result_list_roots: () => ({ client_roots: ROOTS }),
};

/** Tools that also give the client a state: the requests of each round, by key. */
const STATEFUL: Readonly<Record<string, readonly InputRequests[]>> = {
  test_input_required_result_request_state: [
    { confirm: asks("Please confirm", { ok: { type: "boolean" } }, ["ok"]) },
  ],
  test_input_required_result_multiple_inputs: [
    { user_name: asksText("Your name?", "name"), greeting: asksModel("a greeting"), client_roots: ROOTS },
  ],
  test_input_required_result_multi_round: [
    { step1: asksText("Step 1: What is your name?", "name") },
    { step2: asksText("Step 2: What is your favorite color?", "color") },
  ],
  test_input_required_result_tampered_state: [{ confirm: asksText("Confirm", "ok") }],
};

const SCHEMA_2020 = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object" as const,
  $defs: { address: { $anchor: "addressDef", type: "object", properties: { street: { type: "string" } } } },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

/** The changes that a server of the suite announces on request. */
export interface Announcements {
  toolsChanged(): void;
  promptsChanged(): void;
  resourceChanged(uri: string): void;
}

interface RoundState {
  readonly round: number;
}

/** Seals the state of a tool that needs several rounds. */
export interface StateCodec {
  mint(state: RoundState): Promise<string>;
}

/** The names of all tools of the suite's server. */
export const TOOL_NAMES: readonly string[] = [
  ...Object.keys(FIXED),
  ...Object.keys(ASKING),
  ...Object.keys(STATEFUL),
  "test_input_required_result_capabilities",
  "test_tool_with_logging",
  "test_logging_tool",
  "test_tool_with_progress",
  "test_reconnection",
  "test_trigger_tool_change",
  "test_trigger_prompt_change",
  "change_resource",
  "test_x_mcp_header",
  "json_schema_2020_12_tool",
];

/** Registers the tools that the conformance suite calls. */
export function addTools(server: McpServer, codec: StateCodec, announce: Announcements): void {
  const add = (name: string, properties: Json, run: (args: Json, context: ServerContext) => Json) =>
    server.registerTool(
      name,
      { description: `A tool of the conformance suite: ${name}`, inputSchema: schemaOf(properties) },
      ((args: Json, context: ServerContext) => run(args, context)) as never,
    );
  for (const [name, result] of Object.entries(FIXED)) add(name, {}, () => result);
  for (const [name, requestsOf] of Object.entries(ASKING)) {
    add(name, { prompt: { type: "string" }, message: { type: "string" } }, (args, { mcpReq }) => {
      const requests = requestsOf(args);
      const lacking = Object.entries(requests).filter(([key]) => mcpReq.inputResponses?.[key] === undefined);
      if (lacking.length > 0) return inputRequired(Object.fromEntries(lacking));
      const [key = ""] = Object.keys(requests);
      const given = acceptedContent(mcpReq.inputResponses, key) ?? mcpReq.inputResponses?.[key];
      return text(`The client answered ${JSON.stringify(given)}; action=accept`);
    });
  }
  for (const [name, rounds] of Object.entries(STATEFUL)) {
    add(name, {}, async (_, { mcpReq }) => {
      const round = mcpReq.requestState<RoundState>()?.round ?? 0;
      const answered = Object.keys(rounds[round - 1] ?? {}).every((key) => mcpReq.inputResponses?.[key]);
      const now = answered ? round : round - 1;
      const requests = rounds[now];
      if (requests === undefined) return text(`state-ok after round ${now}`);
      return { ...inputRequired(requests), requestState: await codec.mint({ round: now + 1 }) };
    });
  }
  add("test_input_required_result_capabilities", {}, (_, { mcpReq }) => {
    const { sampling, elicitation } = declaredBy(mcpReq);
    const requests = {
      ...(sampling === undefined ? {} : { model: asksModel("a word") }),
      ...(elicitation === undefined ? {} : { user: asksText("A word?", "word") }),
    };
    return mcpReq.inputResponses === undefined ? inputRequired(requests) : text("done");
  });
  for (const name of ["test_tool_with_logging", "test_logging_tool"]) {
    add(name, { of: { type: "string" } }, async ({ of = "the tool" }, { mcpReq }) => {
      for (const step of ["started", "works", "completed"]) await mcpReq.log("info", `${of} ${step}`);
      return text("logged");
    });
  }
  add("test_tool_with_progress", {}, async (_, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
      const params = { progressToken, progress, total: 100 };
      await mcpReq.notify({ method: "notifications/progress", params });
    }
    return text("progressed");
  });
  add("test_reconnection", {}, (_, { http }) => {
    http?.closeSSE?.();
    return text("reconnected");
  });
  add("test_trigger_tool_change", {}, () => {
    announce.toolsChanged();
    return text("announced");
  });
  add("test_trigger_prompt_change", {}, () => {
    announce.promptsChanged();
    return text("announced");
  });
  add("change_resource", { uri: { type: "string" } }, ({ uri }) => {
    announce.resourceChanged(uri);
    return text("announced");
  });
  add("test_x_mcp_header", { region: { type: "string", "x-mcp-header": "Region" } }, ({ region }) =>
    text(`region ${region}`),
  );
  server.registerTool(
    "json_schema_2020_12_tool",
    { description: "A tool with keywords of 2020-12", inputSchema: fromJsonSchema(SCHEMA_2020 as never) },
    ((args: Json) => text(JSON.stringify(args))) as never,
  );
}

const schemaOf = (properties: Json) => fromJsonSchema({ type: "object", properties } as never);
const inputRequired = (inputRequests: InputRequests) => ({ resultType: "input_required", inputRequests });
const declaredBy = ({ envelope }: ServerContext["mcpReq"]): Json =>
  (envelope as Json)?.["io.modelcontextprotocol/clientCapabilities"] ?? {};
