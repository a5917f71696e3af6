import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BUYER, introduceAll, marketAt, offerOf, requestOf, SELLER } from "../agenta/market.ts";
import { ALPHA, BETA, overHttp, type Wire, write } from "../asp/cast.ts";
import { connect, register } from "../asp/platform.ts";
import { invite } from "../asp/scenario.ts";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { type ConsolePage, expectAccessible, hasBrowser, openBrowser, openPage } from "./browser.ts";

describe.skipIf(!hasBrowser())("sessions and executions in a browser", () => {
  let platform: TestPlatform;
  let browser: Browser;
  let opened: ConsolePage;
  let wire: Wire;
  beforeAll(async () => {
    [platform, browser] = await Promise.all([startPlatform(), openBrowser()]);
    await introduceAll(platform);
    const registry = connect(platform.url);
    for (const party of [ALPHA, BETA]) await register(registry, party);
    registry.close();
    wire = overHttp(platform.url);
    opened = await openPage(browser, platform.url);
  }, 60_000);
  afterAll(async () => {
    expect(opened?.faults).toEqual([]);
    await browser?.close();
    await platform?.stop();
  });

  test("a session's transitions appear as its messages arrive, and the transcript is verified in the browser", async () => {
    const { page, open } = opened;
    const { sessionId } = await invite(wire);
    await open(`#/sessions/${sessionId}`);
    const transitions = page.getByRole("list", { name: "Transitions" });
    await transitions.getByText("Idle → Invited").waitFor();
    await page.getByRole("img", { name: "the session is invited" }).waitFor();
    await wire.append(write(BETA, "REJECT", { referenceId: "inv" }, await wire.get(sessionId)));
    await transitions.getByText("Invited → Failed").waitFor();
    await page.getByRole("img", { name: "the session is failed" }).waitFor();
    await page.locator(".page-head .tag", { hasText: "Failed" }).waitFor();
    await page.locator(".page-head .liveness", { hasText: "Complete" }).waitFor();
    const check = page.getByRole("region", { name: "Verified in this browser" });
    await check.getByText("Valid", { exact: true }).waitFor();
    await check.getByText("sealed", { exact: true }).waitFor();
    await expectAccessible(page);
  });

  test("a session is found by its party, and its page opens from there", async () => {
    const { page, open } = opened;
    await open("#/sessions");
    await page.getByLabel("Agent (agent://…)").fill(ALPHA.uri);
    await page.keyboard.press("Enter");
    const { sessionId } = await invite(wire);
    await page.getByRole("link", { name: sessionId.slice(0, 24) }).click();
    await page.getByRole("region", { name: "Parties" }).getByText(BETA.uri).waitFor();
    await expectAccessible(page);
  });

  test.each(["light", "dark"] as const)(
    "a session and an execution fit a phone: %s",
    async (scheme) => {
      const market = marketAt(platform.url);
      const { request_id: requestId } = await market.request(requestOf(await market.publish(offerOf())));
      const { sessionId } = await invite(wire);
      const { page, open, close } = await openPage(browser, platform.url, { width: 390, scheme });
      for (const [place, text] of [
        [`sessions/${sessionId}`, "Idle → Invited"],
        [`executions/${requestId}`, "Accepted"],
      ] as const) {
        await open(`#/${place}`);
        await page.getByText(text).first().waitFor();
        await expectAccessible(page);
        const overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
        expect([place, overflow]).toEqual([place, 0]);
      }
      await close();
    },
    60_000,
  );

  test.each([
    ["Buyer's agent id", BUYER],
    ["Seller's agent id", SELLER],
  ])(
    "an execution is listed by its %s, with its receipts and its money as they arrive",
    async (field, id) => {
      const { page, open } = opened;
      const market = marketAt(platform.url);
      const offer = await market.publish(offerOf());
      await open("#/executions");
      await page.getByLabel(field).fill(id);
      const { request_id: requestId } = await market.request(requestOf(offer));
      await page.getByRole("link", { name: requestId }).click();
      const receipts = page.getByRole("region", { name: "Receipts" });
      await receipts.getByText("Accepted", { exact: true }).waitFor();
      const money = page.getByRole("region", { name: "Money" });
      await money.getByText("10.00 EUR").first().waitFor();
      await page.getByRole("region", { name: "Parties" }).getByText(SELLER).waitFor();
      await page.getByRole("region", { name: "Parties" }).getByRole("link").click();
      const lineage = page.getByRole("region", { name: "Lineage" });
      await lineage.getByRole("link", { name: requestId }).click();
      await page.getByRole("heading", { level: 1, name: /^Execution/ }).waitFor();
      await market.cancel(requestId);
      await receipts.getByText("Cancelled", { exact: true }).waitFor();
      await page.locator(".page-head .tag", { hasText: "Cancelled" }).waitFor();
      await money
        .getByText(/^(Refunded|Voided)/)
        .first()
        .waitFor();
      await expectAccessible(page);
    },
  );

  test("a task and its session have links to each other", async () => {
    const { page, open } = opened;
    const { sessionId } = await invite(wire);
    const draft = { agentId: SELLER, description: "Talk", correlationId: sessionId };
    const { task } = await platform.clients.tasks.createTask({ requestId: crypto.randomUUID(), draft });
    await open(`#/tasks/${task?.id}`);
    await page.getByRole("region", { name: "Lineage" }).getByRole("link", { name: sessionId }).click();
    await page.getByRole("img", { name: "the session is invited" }).waitFor();
    const tasks = page.getByRole("region", { name: "Tasks", exact: true });
    await tasks.getByText("Pending").waitFor();
    await platform.clients.tasks.cancelTask({ taskId: task?.id ?? "", reason: "no more words" });
    await tasks.getByText("Cancelled").waitFor();
    await expectAccessible(page);
    await tasks.getByRole("link", { name: "Talk" }).click();
    await page.getByRole("heading", { level: 1, name: "Talk" }).waitFor();
    await page.goBack();
    await tasks.getByRole("link", { name: "Show all in the list" }).click();
    await page.getByRole("table", { name: "Tasks" }).getByRole("link", { name: "Talk" }).waitFor();
    await page.getByText("1 tasks").waitFor();
  });

  test("an unknown session and an unknown execution are refused with a message", async () => {
    const { page, open } = opened;
    await open(`#/sessions/${crypto.randomUUID()}`);
    await page.getByRole("alert").getByText("SESSION_NOT_FOUND").waitFor();
    await open("#/executions/request-of-no-party");
    await page.getByRole("alert").first().waitFor();
  });
});
