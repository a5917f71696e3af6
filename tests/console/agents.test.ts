import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BUYER, marketAt, offerOf, SELLER } from "../agenta/market.ts";
import { ALPHA } from "../asp/cast.ts";
import { connect, OPERATOR, register } from "../asp/platform.ts";
import { introduce, startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { type ConsolePage, expectAccessible, hasBrowser, openBrowser, openPage } from "./browser.ts";

/** The manifest of an agent that may delegate only to the seller. */
const MANIFEST = {
  id: "manager",
  allowedAgents: [SELLER],
  delegateRules: { [SELLER]: { whenToDelegate: "When texts are long." } },
};

describe.skipIf(!hasBrowser())("agents in a browser", () => {
  let platform: TestPlatform;
  let browser: Browser;
  let opened: ConsolePage;
  beforeAll(async () => {
    [platform, browser] = await Promise.all([
      startPlatform(["--trust-operators", OPERATOR.key]),
      openBrowser(),
    ]);
    for (const id of [SELLER, BUYER]) {
      const agent = { id, version: "1.0.0", organization: id === SELLER ? "org:words" : "org:buyer" };
      await platform.clients.agents.registerAgent({ requestId: crypto.randomUUID(), agent });
    }
    opened = await openPage(browser, platform.url);
  }, 60_000);
  afterAll(async () => {
    expect(opened?.faults).toEqual([]);
    await browser?.close();
    await platform?.stop();
  });

  test("an agent appears in the open list, and its new version on its open page", async () => {
    const { page, open } = opened;
    await open("#/agents");
    await page.getByRole("link", { name: SELLER }).waitFor();
    await introduce(platform, "newcomer");
    await page.getByRole("link", { name: "newcomer" }).click();
    await page.getByText("1.2.0").first().waitFor();
    await platform.clients.agents.registerAgent({
      requestId: crypto.randomUUID(),
      agent: { id: "newcomer", version: "1.3.0" },
    });
    await page.getByText("1.3.0").first().waitFor();
    await page.getByRole("tab", { name: "Versions" }).click();
    await page.getByText("Revision 2").first().waitFor();
    await page.locator(".differences .new", { hasText: "1.3.0" }).waitFor();
    await expectAccessible(page);
  });

  test("an offer has its price, and its title is text without hidden characters", async () => {
    const { page, open } = opened;
    await marketAt(platform.url).publish(offerOf({ title: "\u202egnp\u0007 <b>Sentiment</b>" }));
    await open(`#/agents/${SELLER}?tab=offers`);
    await page.getByRole("heading", { name: "‹U+202E›gnp‹U+0007› <b>Sentiment</b>" }).waitFor();
    await page.getByText("2.50 EUR").waitFor();
    await page.getByText("Open", { exact: true }).waitFor();
    await expectAccessible(page);
  });

  test("trust has its score and the evidence behind it", async () => {
    const { page, open } = opened;
    const registry = connect(platform.url);
    await register(registry, ALPHA, 80);
    registry.close();
    await open("#/agents/alpha-buyer?tab=trust");
    await page.getByText(/^\d+\.\d of 100$/).waitFor();
    await page.getByText("Signed import").waitFor();
    await expectAccessible(page);
  });

  test("the page shows whether one agent may delegate to another, and why", async () => {
    const { page, open } = opened;
    await platform.clients.agents.registerAgent({
      requestId: crypto.randomUUID(),
      agent: { id: "manager", version: "1.0.0", manifest: MANIFEST },
    });
    await open("#/agents/manager?tab=check");
    const answer = page.getByRole("region", { name: "Answer" });
    const check = async (to: string, why: string) => {
      await page.getByLabel("To the agent").fill(to);
      await page.getByLabel("Justification (optional)").fill(why);
      await page.getByRole("button", { name: "Check" }).click();
    };
    await check(SELLER, "");
    await answer.getByText("No justification", { exact: true }).waitFor();
    await check(SELLER, "The texts are long.");
    await answer.getByText("Yes", { exact: true }).waitFor();
    await answer.getByText("When texts are long.").waitFor();
    await expectAccessible(page);
    await check(BUYER, "The texts are long.");
    await answer.getByText("Not allowed", { exact: true }).waitFor();
  });

  test.each([
    ["#/agents/newcomer?tab=versions", "Versions", "Revision 1"],
    ["#/agents/newcomer?tab=none", "Facts", "Registration"],
  ])("the address %s opens the part %s, also after a reload", async (address, tab, text) => {
    const { page, open } = opened;
    await open(address);
    await page.getByText(text).first().waitFor();
    await page.reload();
    await page.getByText(text).first().waitFor();
    expect(await page.getByRole("tab", { name: tab }).getAttribute("aria-selected")).toBe("true");
  });

  test("the parts of an agent are chosen by keyboard, and the address follows", async () => {
    const { page, open } = opened;
    await open("#/agents/newcomer");
    await page.getByRole("tab", { name: "Facts" }).focus();
    await page.keyboard.press("ArrowRight");
    await page.getByText("No capabilities").waitFor();
    expect(await page.evaluate("location.hash")).toBe("#/agents/newcomer?tab=capabilities");
    await page.keyboard.press("End");
    await page.getByRole("tab", { name: "May it delegate?", selected: true }).waitFor();
  });
});
