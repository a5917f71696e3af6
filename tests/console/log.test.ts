import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ALPHA, BETA, overHttp } from "../asp/cast.ts";
import { connect, register } from "../asp/platform.ts";
import { invite } from "../asp/scenario.ts";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { type ConsolePage, expectAccessible, hasBrowser, openBrowser, openPage } from "./browser.ts";

describe.skipIf(!hasBrowser())("the transparency log in a browser", () => {
  let platform: TestPlatform;
  let browser: Browser;
  let opened: ConsolePage;
  beforeAll(async () => {
    [platform, browser] = await Promise.all([startPlatform(), openBrowser()]);
    const registry = connect(platform.url);
    for (const party of [ALPHA, BETA]) await register(registry, party);
    registry.close();
    opened = await openPage(browser, platform.url);
  }, 60_000);
  afterAll(async () => {
    expect(opened?.faults).toEqual([]);
    await browser?.close();
    await platform?.stop();
  });

  /** Appends a leaf to the transparency log by the export of a session. */
  const append = async () => {
    const { sessionId } = await invite(overHttp(platform.url));
    const answer = await fetch(`${platform.url}/v1/asp/sessions/${sessionId}/transcript`);
    expect(answer.status).toBe(200);
  };

  test("a new leaf appears, and its inclusion and the growth are verified in the browser", async () => {
    const { page, open } = opened;
    await append();
    await open("#/log");
    await page.getByText("Signature verified").waitFor();
    const entries = page.getByRole("table", { name: "Entries" });
    await entries.getByText("Session head").first().waitFor();
    const before = await entries.getByRole("row").count();
    await append();
    await expect.poll(() => entries.getByRole("row").count(), { timeout: 15_000 }).toBe(before + 1);
    await page.getByText("1 proofs were verified").waitFor();
    await page.getByRole("button", { name: "Verify entry 0" }).click();
    await page.getByText("Included", { exact: true }).waitFor();
    await expectAccessible(page);
  });

  test("a head is checked against the one that the browser verified on its last visit", async () => {
    const { page, open } = opened;
    await open("#/overview");
    await append();
    await open("#/log");
    await page.reload();
    await page.getByText("Only leaves were added").waitFor();
    await page
      .getByRole("region", { name: "Growth" })
      .getByText(/^\d+ leaves, signed/)
      .waitFor();
  });

  test("a log is reported as rewritten if its root differs from the one that the browser verified", async () => {
    const { page, open } = opened;
    await page.getByText("Signature verified").waitFor();
    // The last byte of the stored root changes, as if an earlier platform had signed another log of the same size.
    await page.evaluate(FORGE);
    await open("#/overview");
    await open("#/log");
    await page.getByText("The log was rewritten").waitFor();
    await page.getByText(/the log has another root for the same \d+ leaves/).waitFor();
    await append();
    await page.getByText("The log was rewritten").waitFor();
    await expectAccessible(page);
  });
});

/** Changes the root hash of the stored head: field 3 of the message, after its tag and its length of 32. */
const FORGE = `(() => {
  const name = Object.keys(localStorage).find((each) => each.startsWith("depute.log-head."));
  const text = localStorage.getItem(name).replaceAll("-", "+").replaceAll("_", "/");
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const at = bytes.findIndex((byte, index) => byte === 0x1a && bytes[index + 1] === 32);
  bytes[at + 33] ^= 1;
  const base64 = btoa(String.fromCharCode(...bytes));
  localStorage.setItem(name, base64.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", ""));
})()`;
