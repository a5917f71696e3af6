import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { HttpRefusal } from "@depute/service";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { MethodRoute } from "../../edge/route.ts";
import { consoleWire } from "./routes.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "depute-console-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Returns a function that calls the handler of GET /console. The handler reads the console from `folder`. */
function reader() {
  const { routes } = consoleWire(pathToFileURL(`${folder}/`));
  const { answer } = routes.find(({ path }) => path === "/console") as MethodRoute;
  return () =>
    answer({ headers: {}, parameters: {}, query: new URLSearchParams() } as Parameters<typeof answer>[0]);
}

test("a platform without the built files answers with the command to build them", async () => {
  const refusal: unknown = await reader()().catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(HttpRefusal);
  expect(refusal).toMatchObject({
    status: 404,
    message: "the console is not built; run `npm ci`, then `npm run build:console`",
  });
});

test("files that are built after the start are served without a restart", async () => {
  const read = reader();
  await expect(read()).rejects.toThrow("npm run build:console");
  mkdirSync(join(folder, "assets"));
  writeFileSync(join(folder, "index.html"), "<!doctype html><title>Depute</title>");
  const answer = await read();
  expect(answer).toMatchObject({ kind: "document", document: { contentType: "text/html; charset=utf-8" } });
});
