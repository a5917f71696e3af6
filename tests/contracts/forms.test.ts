import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { contractFiles, methods, nameOf } from "./contract-files.ts";

const ownFiles = contractFiles().filter(({ proto }) => proto.package.startsWith("depute."));
const ownMessages = ownFiles.flatMap(({ messages }) => messages).flatMap(withNested);
const ownEnums = [...ownFiles, ...ownMessages].flatMap((scope) =>
  "enums" in scope ? scope.enums : scope.nestedEnums,
);
const ownServices = ownFiles.flatMap(({ services }) => services);

/** Words that are reserved in Python, Go, Java or Rust. */
const KEYWORDS_OF_METHODS = new Set(
  `False None True and as assert async await break class continue def del elif else except finally for from global if
  import in is lambda nonlocal not or pass raise return try while with yield chan const default defer fallthrough func go
  goto interface map package range select struct switch type var abstract boolean byte case catch char do double enum
  extends final float implements instanceof int long native new private protected public short static strictfp super
  synchronized this throw throws transient void volatile box crate dyn extern fn impl let loop macro match mod move mut
  override priv pub ref Self self trait typeof unsafe unsized use virtual where`.split(/\s+/),
);

/**
 * Words that are reserved in Python, Go, Java, Rust or C#. Methods are not compared with C#'s words, because
 * C# writes methods in PascalCase.
 */
const KEYWORDS = new Set([
  ...KEYWORDS_OF_METHODS,
  ...`base bool checked decimal delegate event explicit fixed foreach implicit internal lock namespace null object
  operator out params readonly sbyte sealed sizeof stackalloc string uint ulong unchecked ushort using`.split(
    /\s+/,
  ),
]);

/** Returns the forms in which a generator writes a name: unchanged, camelCase, PascalCase and snake_case. */
function identifiers(name: string): string[] {
  const words = name
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .split("_")
    .filter(Boolean);
  const pascal = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
  return [name, pascal.charAt(0).toLowerCase() + pascal.slice(1), pascal, words.join("_")];
}

/** Generators write type names unchanged and in PascalCase. Rust and C# drop the prefix of an enum's value. */
describe("names of the platform's own packages", () => {
  const packages = [...new Set(ownFiles.flatMap(({ proto }) => proto.package.split(".")))];
  const types = [...ownMessages, ...ownEnums, ...ownServices];
  const values = ownEnums.flatMap(({ values: own, name }) =>
    own.map((value) => ({ name: value.name, short: value.localName, of: name })),
  );
  const isKeyword = (name: string) => KEYWORDS.has(name);

  test("no package has a part that is a keyword", () => {
    expect(packages.filter(isKeyword)).toEqual([]);
  });

  test("no message, enum or service is a keyword", () => {
    expect(types.filter(({ name }) => isKeyword(name)).map(String)).toEqual([]);
  });

  test("no method is a keyword in any form", () => {
    const odd = ownServices
      .flatMap((service) => service.methods)
      .filter(({ name }) => identifiers(name).some((form) => KEYWORDS_OF_METHODS.has(form)));
    expect(odd.map(String)).toEqual([]);
  });

  test("no oneof is a keyword in any form", () => {
    const odd = ownMessages.flatMap((message) => message.oneofs);
    expect(odd.filter(({ name }) => identifiers(name).some(isKeyword)).map(String)).toEqual([]);
  });

  test("no value of an enum is a keyword, nor is its PascalCase form without the enum's prefix", () => {
    const odd = values.filter(
      ({ name, short }) => isKeyword(name) || isKeyword(short) || isKeyword(identifiers(short)[2] ?? ""),
    );
    expect(odd).toEqual([]);
  });

  test("no two enums have the same values", () => {
    const contents = ownEnums.map((one) => one.values.map(({ localName }) => localName).join(" "));
    const odd = ownEnums.filter((_, at) => contents.indexOf(contents[at] ?? "") !== at);
    expect(odd.map(String)).toEqual([]);
  });
});

describe("fields of the platform's own packages", () => {
  const fields = ownMessages.flatMap((message) => message.fields);

  test("none has a keyword as its name", () => {
    const odd = fields.filter(({ name }) => identifiers(name).some((form) => KEYWORDS.has(form)));
    expect(odd.map(String)).toEqual([]);
  });

  test("a point in time is a Timestamp, a length of time a Duration", () => {
    const temporal = /(_ms|_seconds|_at|_time|_deadline|^(timeout|lifetime|wait|grace|ttl|duration))$/;
    const odd = fields.filter((field) => temporal.test(field.name) && !isTime(field));
    expect(odd.map(String)).toEqual([]);
  });

  test("a raw digest or signature is bytes", () => {
    const raw = /(^|_)(digest|sha256|signature)$/;
    const odd = fields.filter(
      (field) => raw.test(field.name) && field.scalar !== undefined && !isBytes(field),
    );
    expect(odd.map(String).filter((name) => !TEXT_DIGESTS.has(name))).toEqual([]);
  });

  test("a request names a resource by the resource's id", () => {
    const odd = ownMessages.filter(
      ({ name, fields: own }) => name.endsWith("Request") && own.some((field) => field.name === "id"),
    );
    expect(odd.map(({ typeName }) => typeName)).toEqual([]);
  });
});

/** Digests as text instead of bytes: in Agenta, `sha256:…` identifies an artifact. */
const TEXT_DIGESTS = new Set([
  "field depute.verifier.v1.StoreArtifactRequest.digest",
  "field depute.verifier.v1.StoreArtifactResponse.digest",
  "field depute.verifier.v1.GetArtifactRequest.digest",
]);

describe("lists, watches and tasks", () => {
  const requests = new Map(methods.map((method) => [nameOf(method), method]));
  const listing = methods.filter(({ name }) => name.startsWith("List"));
  // These streams begin with the whole present state, so a reader needs no position.
  const ofState = ["WatchAssignments", "WatchTasks"];
  const watching = methods.filter(({ name }) => name.startsWith("Watch") && !ofState.includes(name));
  const naming = [
    "GetTask",
    "WatchTask",
    "CancelTask",
    "MoveTaskDeadline",
    "SuspendTask",
    "ResumeTask",
  ].concat(["ProvideInput", "WaitTask", "GetLineage"]);

  test.each(listing.map((method) => [nameOf(method), method] as const))("%s pages by tokens", (_, method) => {
    const defaults = Object.fromEntries(
      method.input.fields.map((field) => [field.name, String(field.scalar)]),
    );
    expect(Object.keys(defaults)).toEqual(expect.arrayContaining(["page_size", "page_token"]));
    expect(method.output.fields.map(({ name }) => name)).toContain("next_page_token");
  });

  test.each(watching.map((method) => [nameOf(method), method] as const))(
    "%s resumes after a sequence",
    (_, method) => {
      expect(method.input.fields.map(({ name }) => name)).toContain("after_sequence");
    },
  );

  test.each(naming)("TaskService.%s names a task in the one way", (name) => {
    const method = requests.get(`depute.tasks.v1.TaskService/${name}`);
    const namedFields = method?.input.fields.slice(0, 3).map((field) => [field.number, field.name]);
    expect(namedFields).toEqual([
      [1, "task_id"],
      [2, "external_id"],
      [3, "agent_id"],
    ]);
  });
});

/** Returns a message with all messages inside it. */
function withNested(message: DescMessage): DescMessage[] {
  return [message, ...message.nestedMessages.flatMap(withNested)];
}

function isTime(field: DescField): boolean {
  return /google\.protobuf\.(Timestamp|Duration)$/.test(field.message?.typeName ?? "");
}

/** Scalar type 12 is bytes. */
function isBytes(field: DescField): boolean {
  return field.scalar === 12;
}
