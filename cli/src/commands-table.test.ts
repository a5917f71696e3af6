import { readFileSync } from "node:fs";
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { loadService } from "./client/services.ts";
import { parametersOf } from "./parse.ts";
import { OWN_WORDS, PROGRAMS } from "./programs.ts";
import { referencePage } from "./reference.ts";
import type { Column } from "./table/command.ts";
import { COMMANDS } from "./table/commands.ts";

const CALLS = COMMANDS.flatMap((command) =>
  command.call === undefined ? [] : ([[command.path, command, command.call]] as const),
);

/** Returns the field at a path of JSON names; undefined if there is no such field. */
function fieldAt(message: DescMessage, path: string): DescField | undefined {
  const [name, ...rest] = path.split(".");
  const field = message.fields.find(({ jsonName }) => jsonName === name);
  if (field === undefined || rest.length === 0) return field;
  return field.message === undefined ? undefined : fieldAt(field.message, rest.join("."));
}

test("each command has one way to run, and its own path", () => {
  const paths = COMMANDS.map(({ path }) => path);
  expect(new Set(paths).size).toBe(paths.length);
  for (const { call, program, ownWords } of COMMANDS) {
    if (program !== undefined) expect(PROGRAMS).toHaveProperty(program);
    if (ownWords !== undefined) expect(OWN_WORDS).toHaveProperty(ownWords);
    expect([call, program, ownWords].filter((way) => way !== undefined)).toHaveLength(1);
  }
});

describe.each(CALLS)("%s", (_, command, call) => {
  test("calls a method of the contracts", async () => {
    const method = (await loadService(call.service)).method[call.method];
    expect(method?.methodKind).toBe(call.stream?.method === call.method ? "server_streaming" : "unary");
  });

  test("sets fields of the request, with existing constants", async () => {
    const input = (await loadService(call.service)).method[call.method]?.input as DescMessage;
    for (const [name, parameter] of parametersOf(command)) {
      if (parameter.field === undefined) continue;
      const field = fieldAt(input, parameter.field);
      expect(field, name).toBeDefined();
      expect(field?.fieldKind === "list", name).toBe(parameter.repeated ?? false);
      if (parameter.type !== "enum") continue;
      const constants = field?.enum?.values.map((each) => each.name) ?? [];
      const { prefix = "", values = [] } = parameter;
      const variables = values.map((value) => prefix + value.toUpperCase().replaceAll("-", "_"));
      // A command must accept a word for every constant of the enum except UNSPECIFIED. So the test fails when the enum
      // gets a new constant.
      expect(new Set([...variables, `${prefix}UNSPECIFIED`]), name).toEqual(new Set(constants));
    }
  });

  test("shows fields of the answer", async () => {
    const service = await loadService(call.service);
    const { output } = service.method[call.method] as { output: DescMessage };
    const item = call.shown.item === "" ? output : fieldAt(output, call.shown.item)?.message;
    const columns = [...call.shown.columns, ...(call.shown.wide ?? [])];
    expectFields(item as DescMessage, call.shown.item === "taskEvent" ? columns.slice(0, 3) : columns);
    if (call.stream === undefined) return;
    const streamed = service.method[call.stream.method]?.output as DescMessage;
    const message = fieldAt(streamed, call.stream.item)?.message as DescMessage;
    expectFields(message, call.shown.item === "taskEvent" ? columns.slice(0, 3) : columns);
  });
});

function expectFields(message: DescMessage, columns: readonly Column[]): void {
  for (const [heading, paths, format = "text"] of columns) {
    for (const path of paths.split("|")) {
      const field = fieldAt(message, path);
      expect(field, `${heading}: ${path}`).toBeDefined();
      if (!format.startsWith("enum:")) continue;
      expect(
        field?.enum?.values.every(({ name }) => name.startsWith(format.slice(5))),
        heading,
      ).toBe(true);
    }
  }
}

test("docs/cli.md shows the table; npm run cli-reference writes it", () => {
  const page = readFileSync(new URL("../../docs/cli.md", import.meta.url), "utf8");
  expect(page).toBe(referencePage());
});
