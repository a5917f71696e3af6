import { expect, test } from "vitest";
import { type DraftedTool, draftMap } from "./draft-map.ts";
import { Faults } from "./faults.ts";
import { readToolMap } from "./read-map.ts";

const tool = (name: string, argument = "", annotations = {}): DraftedTool => ({
  name,
  annotations,
  inputSchema: { type: "object", properties: argument === "" ? {} : { [argument]: { type: "string" } } },
});

test.each<[DraftedTool, string, string, unknown]>([
  [tool("read_file", "path"), "docs", "read", { argument: "/path", form: "path" }],
  [tool("write_file", "path"), "docs", "write", { argument: "/path", form: "path" }],
  [tool("delete_file", "file_path"), "docs", "delete", { argument: "/file_path", form: "path" }],
  [tool("frobnicate", "path"), "docs", "write", { argument: "/path", form: "path" }],
  [tool("frobnicate", "path", { readOnlyHint: true }), "docs", "read", { argument: "/path", form: "path" }],
  [tool("fetch", "url"), "web", "fetch", { argument: "/url", form: "uri" }],
  [tool("web_search", "url"), "web", "search", { argument: "/url", form: "uri" }],
  [tool("run_query", "table"), "data", "update", { argument: "/table", form: "text" }],
  [tool("query_rows", "table"), "data", "query", { argument: "/table", form: "text" }],
  [tool("generate", "model"), "llm", "generate", { argument: "/model", form: "text" }],
  [tool("run", "language"), "code", "execute", { argument: "/language", form: "text" }],
  [tool("echo", "message"), "compute", "execute", "server/echo"],
  [tool("ping"), "compute", "execute", "server/ping"],
])("a draft for %j needs %s:%s on %j", (drafted, namespace, action, resource) => {
  const { tools } = draftMap("server", [drafted], () => "A".repeat(43));
  expect(tools[drafted.name]).toEqual({ namespace, action, resource, cost: 0, definition: "A".repeat(43) });
  const faults = new Faults();
  readToolMap({ tools }, "", faults);
  expect(faults.found).toEqual([]);
});
