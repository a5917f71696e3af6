import { connect, createKey } from "@depute/client";
import type { Keypair } from "@depute/dct";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { type ConsolePage, expectFitsEverywhere, hasBrowser, openBrowser, openPage } from "./browser.ts";

/**
 * Maximum milliseconds of the page's clock until a revocation appears. The timer that reads the list is
 * slower, so only the stream can cause the read in time.
 */
const SOON_MS = 3_000;

describe.skipIf(!hasBrowser())("tokens in a browser", () => {
  let platform: TestPlatform;
  let browser: Browser;
  let opened: ConsolePage;
  beforeAll(async () => {
    [platform, browser] = await Promise.all([startPlatform(), openBrowser()]);
    opened = await openPage(browser, platform.url);
  }, 60_000);
  afterAll(async () => {
    expect(opened?.faults).toEqual([]);
    await browser?.close();
    await platform?.stop();
  });

  const mint = async (holder: Keypair) => {
    const { token, revocationId } = await platform.clients.tokens.mintToken({
      requestId: crypto.randomUUID(),
      delegatee: holder.principal.id,
      contractId: "ct_0123456789ab",
      capabilities: [{ namespace: "docs", action: "read", resource: "/reports/**" }],
      maxChainDepth: 2,
      maxBudgetMicrocents: 500_000_000n,
      lifetime: { seconds: 600n },
    });
    return { token: token?.token ?? "", revocationId };
  };

  test("a new delegation appears in the open list", async () => {
    const { page, open } = opened;
    await open("#/tokens");
    await page.getByText("No delegations").waitFor();
    await mint(createKey());
    await page.getByRole("table", { name: "Delegations" }).getByText("Active").waitFor();
    await expectFitsEverywhere(page);
  });

  test("a revocation appears in the open list before its next read is due", async () => {
    const { page, open, faults, close } = await openPage(browser, platform.url);
    const holder = createKey();
    const token = await mint(holder);
    await page.clock.install();
    await open("#/tokens");
    const table = page.getByRole("table", { name: "Delegations" });
    await table.getByText("Active").first().waitFor();
    // The start of the stream causes a read. After that, the test stops the page's clock.
    await page.clock.pauseAt(new Date(await page.evaluate<number>("Date.now() + 1000")));
    const client = await connect(platform.url, { key: holder });
    await client.revoke(token, holder);
    let elapsedMs = 0;
    await expect
      .poll(
        async () => {
          elapsedMs += 350;
          if (elapsedMs < SOON_MS) await page.clock.runFor(350);
          return table.getByText("Revoked").count();
        },
        { interval: 500, timeout: 15_000 },
      )
      .toBe(1);
    expect(faults).toEqual([]);
    await client.close();
    await close();
  });

  test("a revocation appears in the open log, and the parts of the page are chosen by keyboard", async () => {
    const { page, open } = opened;
    await open("#/tokens");
    await page.getByRole("tab", { name: "Delegations" }).focus();
    await page.keyboard.press("End");
    const log = page.getByRole("table", { name: "Revocations" });
    await log.getByText("Token").first().waitFor();
    const before = await log.getByText("Token").count();
    const holder = createKey();
    const client = await connect(platform.url, { key: holder });
    await client.revoke(await mint(holder), holder);
    await expect.poll(() => log.getByText("Token").count()).toBe(before + 1);
    await client.close();
  });
});
