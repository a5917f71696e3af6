import {
  ErrorCodeSchema,
  ExecutionStatusSchema,
} from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { AGENTA_MESSAGES, readDocument, schemaFile } from "@depute/gateway/agenta";
import {
  isTerminal,
  OPEN_STATUSES,
  statusWord,
  TERMINAL_STATUSES,
  TRANSITIONS,
} from "@depute/tasks/executions/machine";
import { CODE_OF_MODE, FAILURE_MODES } from "@depute/tasks/executions/refusal";
import { describe, expect, test } from "vitest";

const read = (file: string) => JSON.parse(readDocument(file).toString("utf8"));
const manifest = read("manifest.json");
const schema = read(schemaFile("execution_receipt"));

describe("the platform's tables are the protocol's", () => {
  test("transitions and terminal states", () => {
    const pairs = TRANSITIONS.map(([from, to]) => `${statusWord(from)}->${statusWord(to)}`);
    expect(pairs).toEqual(manifest.state_transitions.allowed);
    expect(TERMINAL_STATUSES.map(statusWord)).toEqual(manifest.state_transitions.terminal);
    const all = ExecutionStatusSchema.values.filter(({ number }) => number !== 0).map(({ number }) => number);
    expect(all.map((status) => statusWord(status as never)).sort()).toEqual(
      [...schema.properties.status.enum].sort(),
    );
    for (const status of all) {
      expect(isTerminal(status as never)).toBe(!OPEN_STATUSES.includes(status as never));
    }
  });

  test("failure modes, each with a code of receipts", () => {
    expect(FAILURE_MODES).toEqual(manifest.failure_modes);
    const codes: string[] = schema.properties.error.properties.code.enum;
    for (const mode of Object.values(FAILURE_MODES).flat()) {
      const word = ErrorCodeSchema.value[CODE_OF_MODE[mode]]?.localName.toLowerCase();
      expect(codes).toContain(word);
      // A failure mode whose name is also an error code must map to that code.
      if (codes.includes(mode)) expect(word).toBe(mode);
    }
  });

  test("messages", () => {
    expect(AGENTA_MESSAGES).toEqual(manifest.message_types);
  });
});
