import { readdirSync, readFileSync } from "node:fs";
import type { JsonValue } from "@bufbuild/protobuf";

const FOLDER = new URL("../../fixtures/", import.meta.url);

/** An entry of fixtures/index.json: a document, and the names of the messages at JSON pointers into the document. */
export interface Fixture {
  file: string;
  messages: Record<string, string>;
}

export const fixtures: readonly Fixture[] = JSON.parse(readFileSync(new URL("index.json", FOLDER), "utf8"));

/** The names of all documents in the folder, including those that the index does not list. */
export const fixtureFiles: readonly string[] = readdirSync(FOLDER, {
  recursive: true,
  encoding: "utf8",
}).filter((path) => path.includes("/") && path.endsWith(".json"));

export const fixtureNotes: string = readFileSync(new URL("README.md", FOLDER), "utf8");

export function readFixture(file: string): JsonValue {
  return JSON.parse(readFileSync(new URL(file, FOLDER), "utf8"));
}

/** Returns every message of every fixture, as rows for `test.each`. */
export function fixtureMessages(): { name: string; message: string; json: JsonValue }[] {
  return fixtures.flatMap(({ file, messages }) =>
    Object.entries(messages).map(([pointer, message]) => ({
      name: pointer === "" ? file : `${file}#${pointer}`,
      message,
      json: at(readFixture(file), pointer),
    })),
  );
}

function at(json: JsonValue, pointer: string): JsonValue {
  return pointer
    .split("/")
    .slice(1)
    .reduce<JsonValue>((value, step) => (value as Record<string, JsonValue>)[step] as JsonValue, json);
}
