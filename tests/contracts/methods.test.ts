import { basename } from "node:path";
import { getOption, hasOption } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { idempotent_by, Role, roles } from "@depute/contracts/depute/rpc/v1/method_options_pb";
import { describe, expect, test } from "vitest";
import { allServices, contractFiles, methods, nameOf } from "./contract-files.ts";

const files = contractFiles();

describe("every method", () => {
  test.each(methods.map((method) => [nameOf(method), method] as const))("%s names its roles", (_, method) => {
    const roleNames = getOption(method, roles);
    expect(roleNames.length).toBeGreaterThan(0);
    expect(new Set(roleNames).size).toBe(roleNames.length);
    if (roleNames.includes(Role.ANY)) expect(roleNames).toEqual([Role.ANY]);
  });

  test.each(methods.map((method) => [nameOf(method), method] as const))(
    "%s reads, or recognizes a repeated call",
    (_, method) => {
      const reads = method.idempotency === Level.NO_SIDE_EFFECTS;
      const hasRequestId = method.input.fields.some((field) => field.name === "request_id");
      const otherwise = hasOption(method, idempotent_by);
      if (reads) expect(otherwise).toBe(false);
      else expect(hasRequestId || otherwise).toBe(true);
    },
  );

  test("a read has the name of a read", () => {
    const reading =
      /^(Get|List|Export|BatchGet|Watch|Read|Inspect|Explain|Discover|Resolve|Check|Prepare|Trace|Wait|Request)/;
    const reads = methods.filter(({ idempotency }) => idempotency === Level.NO_SIDE_EFFECTS);
    const odd = reads.filter(({ name }) => !reading.test(name) && !name.startsWith("Verify"));
    expect(odd.map(nameOf)).toEqual([]);
  });
});

describe("files in generated code", () => {
  test("no two have one base name, as C# puts them into one folder", () => {
    const names = files.map(({ proto }) => basename(proto.name));
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
  });

  test("no two services have one name within the platform's packages", () => {
    const names = allServices.map(({ name, file }) => `${file.proto.package.split(".")[1]}.${name}`);
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
  });

  test("no package hides another", () => {
    const packages = [...new Set(files.map(({ proto }) => proto.package))];
    const first = new Set(packages.map((name) => name.split(".")[0]));
    const hiding = packages.filter((name) =>
      name
        .split(".")
        .slice(1)
        .some((part) => first.has(part)),
    );
    expect(hiding).toEqual([]);
  });

  test.each(files.map((file) => [file.proto.name, file] as const))(
    "%s names its packages in Go, Java and C#",
    (_, file) => {
      const { goPackage, javaPackage, javaMultipleFiles, csharpNamespace } = file.proto.options ?? {};
      expect(goPackage).toMatch(/^[a-z0-9./-]+;[a-z0-9]+$/);
      expect(javaPackage).toMatch(/^dev\.depute\.|^lf\.|^org\./);
      expect(javaMultipleFiles).toBe(true);
      expect(csharpNamespace).toMatch(/^([A-Z][A-Za-z0-9]*)(\.[A-Z][A-Za-z0-9]*)+$/);
    },
  );
});
