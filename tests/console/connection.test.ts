import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createKey, seedOf } from "@depute/client";
import type { Browser } from "playwright-core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { introduce, startPlatform, type TestPlatform, value } from "../gateway/platform.ts";
import { expectAccessible, expectFitsEverywhere, hasBrowser, openBrowser, openPage } from "./browser.ts";

describe.skipIf(!hasBrowser())("the connection of a browser", () => {
  let browser: Browser;
  let folder: string;
  const cleanUp: (() => Promise<unknown>)[] = [];
  beforeEach(async () => {
    browser = await openBrowser();
    folder = mkdtempSync(join(tmpdir(), "depute-console-"));
    cleanUp.push(async () => rmSync(folder, { recursive: true, force: true }));
    cleanUp.push(() => browser.close());
  }, 60_000);
  afterEach(async () => {
    for (const undo of cleanUp.splice(0).reverse()) await undo();
  }, 60_000);

  const start = async (...args: string[]): Promise<TestPlatform> => {
    const platform = await startPlatform(args, { dataDir: folder });
    let isRunning = true;
    const stop = async () => {
      if (isRunning) await platform.stop();
      isRunning = false;
    };
    cleanUp.push(stop);
    return { ...platform, stop };
  };

  test("a page continues after a restart of the platform, without a gap", async () => {
    const first = await start();
    const port = new URL(first.url).port;
    await introduce(first, "painter");
    const draft = { agentId: "painter", description: "Paint the roof", input: value({}) };
    const { task } = await first.clients.tasks.createTask({ requestId: crypto.randomUUID(), draft });
    const { page, open, close } = await openPage(browser, first.url);
    await open(`#/tasks/${task?.id}`);
    await page.getByText("1 events").waitFor();
    await first.stop();
    await page.getByText("Reconnecting").first().waitFor();
    const second = await start("--gateway-port", port);
    await second.clients.tasks.cancelTask({ taskId: task?.id ?? "", reason: "rain" });
    await page.locator(".page-head .tag", { hasText: "Cancelled" }).waitFor();
    await page.getByText("2 events").waitFor();
    await close();
  }, 60_000);

  test("a secret signs in, a wrong one is refused, and the tab deletes it on sign-out", async () => {
    const credentials = join(folder, "credentials.json");
    const digest = createHash("sha256").update(SECRET).digest("hex");
    writeFileSync(credentials, JSON.stringify([{ sha256: digest, principal: "anna" }]), {
      mode: 0o600,
    });
    const platform = await start("--auth", "required", "--credentials-file", credentials);
    const { page, open, close } = await openPage(browser, platform.url);
    await open("");
    await page.getByRole("heading", { name: "Sign in to Depute" }).waitFor();
    await expectFitsEverywhere(page);
    await page.getByRole("radio", { name: "Key and token" }).check();
    await expectFitsEverywhere(page);
    await page.getByRole("radio", { name: "Secret" }).check();
    await page.getByRole("textbox", { name: "Secret" }).fill("wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").getByText("UNAUTHENTICATED").waitFor();
    await expectFitsEverywhere(page);
    await page.getByRole("textbox", { name: "Secret" }).fill(SECRET);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    expect(await page.evaluate("JSON.stringify(localStorage)")).not.toContain(SECRET);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in to Depute" }).waitFor();
    expect(await page.evaluate("JSON.stringify(sessionStorage)")).not.toContain(SECRET);
    await close();
  }, 60_000);

  test("a caller signs in by keyboard", async () => {
    const platform = await start("--auth", "required");
    const { page, open, close } = await openPage(browser, platform.url);
    await open("#/agents");
    await page.getByRole("radio", { name: "Secret" }).focus();
    await page.keyboard.press("ArrowDown");
    await page.getByLabel(/^Seed of the key/).waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.type(seedOf(createKey()));
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Agents" }).waitFor();
    await close();
  }, 60_000);

  test("a key signs in with a new proof for each call", async () => {
    const platform = await start("--auth", "required");
    const { page, open, close } = await openPage(browser, platform.url);
    await open("");
    await page.getByRole("radio", { name: "Key and token" }).check();
    await page.getByLabel(/^Seed of the key/).fill(seedOf(createKey()));
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await open("#/tasks");
    await page.getByText("No tasks").waitFor();
    await close();
  }, 60_000);

  test("a token signs in together with the key of its holder, and stays after a reload", async () => {
    const open = await start();
    const holder = createKey();
    const { token } = await open.clients.tokens.mintToken({
      requestId: crypto.randomUUID(),
      delegatee: holder.principal.id,
      contractId: "ct_0123456789ab",
      capabilities: [{ namespace: "docs", action: "read", resource: "/reports/**" }],
      maxChainDepth: 2,
      maxBudgetMicrocents: 500_000_000n,
      lifetime: { seconds: 600n },
    });
    await open.stop();
    const platform = await start("--auth", "required");
    const { page, open: go, close } = await openPage(browser, platform.url);
    await go("#/tokens");
    await page.getByRole("radio", { name: "Key and token" }).check();
    await page.getByLabel(/^Seed of the key/).fill(seedOf(holder));
    await page.getByLabel("Token (optional)").fill(token?.token ?? "");
    const [request] = await Promise.all([
      page.waitForRequest((each) => each.headers().dpop !== undefined),
      page.getByRole("button", { name: "Sign in" }).click(),
    ]);
    expect(request.headers().authorization).toBe(`DPoP ${token?.token}`);
    await page.getByRole("table", { name: "Delegations" }).getByText("Active").waitFor();
    await expectAccessible(page);
    await page.reload();
    await page.getByRole("table", { name: "Delegations" }).getByText("Active").waitFor();
    await close();
  }, 60_000);

  test.each([
    ["a listed origin", "is answered", true],
    ["another origin", "is refused", false],
  ])(
    "a call of a page of %s by connect-web %s",
    async (_, __, isListed) => {
      const site = await startSite();
      cleanUp.push(async () => {
        // The browser keeps connections open. Without this call, closing the server would wait for those
        // connections.
        site.server.closeAllConnections();
        site.server.close();
      });
      const platform = await start(...(isListed ? ["--allowed-origins", site.origin] : []));
      const page = await browser.newPage();
      await page.goto(site.origin);
      const outcome = await page.evaluate(
        `import("/client.js").then(({ call }) => call(${JSON.stringify(platform.url)})).catch(String)`,
      );
      if (isListed) expect(outcome).toEqual([expect.stringMatching(/^[\w-]{43}$/), "0", "NotFound"]);
      else expect(outcome).toContain("Failed to fetch");
    },
    60_000,
  );
});

const SECRET = "a-long-secret-of-anna-0123456789";

/** Starts a website of another origin. Its client calls the platform by Connect and by gRPC-Web. */
async function startSite(): Promise<{ server: Server; origin: string }> {
  const { build } = await import("vite");
  const built = await build({
    configFile: false,
    logLevel: "silent",
    build: {
      write: false,
      target: "es2022",
      lib: { entry: new URL("cross-origin-client.ts", import.meta.url).pathname, formats: ["es"] },
    },
  });
  const [output] = Array.isArray(built) ? built : [built];
  if (output === undefined || !("output" in output)) throw new Error("the client was not built");
  const server = createServer((request, response) => {
    const isScript = request.url === "/client.js";
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
    response.end(isScript ? output.output[0].code : "<!doctype html><title>site</title>");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}
