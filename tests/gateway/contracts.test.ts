import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Validator } from "@seriousme/openapi-schema-validator";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { methods, nameOf } from "../contracts/contract-files.ts";
import { startPlatform, type TestPlatform } from "./platform.ts";

const folder = mkdtempSync(join(tmpdir(), "depute-protos-"));
const ARCHIVE = Buffer.from("an archive");
let platform: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform(["--protos-dir", folder]);
});
afterAll(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true });
});

interface Refusal {
  message: string;
  details: { debug: { reason: string } }[];
}

describe("/protos", () => {
  test("without a bundle, names the command that writes one", async () => {
    const response = await fetch(`${platform.url}/protos`);
    expect(response.status).toBe(404);
    const { message, details } = (await response.json()) as Refusal;
    expect(message).toContain("npm run bundle");
    expect(details[0]?.debug.reason).toBe("UNKNOWN_METHOD");
  });

  describe("with a bundle", () => {
    beforeAll(() => {
      writeFileSync(join(folder, "depute-protos-0.1.0.tgz"), ARCHIVE);
      writeFileSync(join(folder, "credentials.json"), "no part of the bundle");
    });

    test("lists its files with their digests, and no other file", async () => {
      const response = await fetch(`${platform.url}/protos`);
      expect(await response.json()).toEqual({
        files: [
          {
            name: "depute-protos-0.1.0.tgz",
            path: "/protos/depute-protos-0.1.0.tgz",
            sha256: createHash("sha256").update(ARCHIVE).digest("hex"),
            bytes: ARCHIVE.length,
            content_type: "application/gzip",
          },
        ],
      });
    });

    test("serves a file, and answers 304 to a client that has it", async () => {
      const url = `${platform.url}/protos/depute-protos-0.1.0.tgz`;
      const response = await fetch(url);
      expect(response.headers.get("content-type")).toBe("application/gzip");
      expect(Buffer.from(await response.arrayBuffer())).toEqual(ARCHIVE);
      const again = await fetch(url, { headers: { "if-none-match": response.headers.get("etag") ?? "" } });
      expect(again.status).toBe(304);
    });

    test.each(["credentials.json", "%2e%2e%2fcredentials.json", "nothing"])("has no %s", async (name) => {
      const response = await fetch(`${platform.url}/protos/${name}`);
      expect(response.status).toBe(404);
      await response.body?.cancel();
    });
  });
});

interface OpenApi {
  paths: Record<string, { post: { requestBody: { content: object } }; get?: object }>;
  components: { schemas: Record<string, { properties: Record<string, { maxLength?: number }> }> };
}

describe("/openapi.json", () => {
  let document: OpenApi;
  beforeAll(async () => {
    document = (await (await fetch(`${platform.url}/openapi.json`)).json()) as OpenApi;
  });

  test("is valid OpenAPI 3.1", async () => {
    const { valid, errors } = await new Validator().validate(document as unknown as Record<string, unknown>);
    expect([valid, errors]).toEqual([true, undefined]);
  });

  test("has every unary method of the platform's own contracts, and no stream", () => {
    const unary = methods
      .filter(({ methodKind }) => methodKind === "unary")
      .map((method) => `/${nameOf(method)}`);
    const ownPaths = Object.keys(document.paths).filter((path) => path.startsWith("/depute."));
    expect(ownPaths.sort()).toEqual(unary.sort());
  });

  test("states the limits of the contracts", () => {
    const draft = document.components.schemas["depute.tasks.v1.TaskDraft"];
    expect(draft?.properties.agentId?.maxLength).toBe(128);
  });

  test("describes a call that the platform serves", async () => {
    const path = "/depute.tasks.v1.TaskService/ListTasks";
    expect(document.paths[path]?.post.requestBody.content).toHaveProperty(["application/json"]);
    const response = await fetch(`${platform.url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    expect(response.status).toBe(200);
    expect(Object.keys((await response.json()) as object)).toEqual([]);
  });
});
