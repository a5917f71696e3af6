import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPlatform, type TestPlatform, value } from "../gateway/platform.ts";
import { type ConsolePage, expectAccessible, hasBrowser, openBrowser, openPage } from "./browser.ts";

/** A hostile title. Without escapes it would read as another word, or run a script as markup. */
const TITLE = "\u202egnp\u0007 <img src=x onerror=\"document.title='run'\">";
/** Two reviewers whose names look equal, because one name contains a zero-width character. */
const REVIEWERS = ["an\u200bna", "anna"];

describe.skipIf(!hasBrowser())("reviews in a browser", () => {
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

  const create = async (
    title: string,
    reviewers: readonly string[],
    { subject = "ct_0123456789ab hash", content = { picture: "blue" } as Record<string, string> } = {},
  ) => {
    const { review } = await platform.clients.reviews.createReview({
      requestId: crypto.randomUUID(),
      kind: 1,
      subject,
      title,
      content: value(content),
      author: "painter",
      reviewers: [...reviewers],
    });
    return review?.id ?? "";
  };

  test("a review appears in the open inbox, and leaves it when another caller decides", async () => {
    const { page, open } = opened;
    await open("#/reviews");
    await page.getByText("Nothing waits for a decision").waitFor();
    const reviewId = await create("Check the roof", ["anna"]);
    await page.getByRole("link", { name: "Check the roof" }).waitFor();
    await platform.clients.reviews.decideReview({ reviewId, verdict: 1, reviewer: "anna" });
    await page.getByText("Nothing waits for a decision").waitFor();
  });

  test("a decision of another caller appears on the open review", async () => {
    const { page, open } = opened;
    const reviewId = await create("Check the door", ["anna"]);
    await open(`#/reviews/${reviewId}`);
    await page.getByRole("button", { name: "Approve" }).waitFor();
    await platform.clients.reviews.decideReview({ reviewId, verdict: 1, reviewer: "anna" });
    await page.locator(".page-head .tag", { hasText: "Approved" }).waitFor();
    await page.getByRole("button", { name: "Approve" }).waitFor({ state: "detached" });
  });

  test("a review shows what changed since the previous review of its subject", async () => {
    const { page, open } = opened;
    const subject = "ct_abcdefabcdef hash";
    const first = await create("Version 1", ["anna"], { subject, content: { roof: "red", wall: "white" } });
    await platform.clients.reviews.decideReview({
      ...{ reviewId: first, verdict: 2, reviewer: "anna", reason: "no red roof" },
    });
    const second = await create("Version 2", ["anna"], { subject, content: { roof: "blue", wall: "white" } });
    await open(`#/reviews/${second}`);
    const changes = page.getByRole("region", { name: "Changes since the last version" });
    await changes.getByText("no red roof").waitFor();
    expect(await changes.locator("dt").allTextContents()).toEqual(["roof"]);
    expect(await changes.locator("dd.old").textContent()).toContain("red");
    expect(await changes.locator("dd.new").textContent()).toContain("blue");
  });

  test("hostile titles and names of reviewers are text, and a choice decides as the chosen reviewer", async () => {
    const { page, open } = opened;
    const reviewId = await create(TITLE, REVIEWERS);
    await open("#/reviews");
    await page.getByRole("link", { name: "‹U+202E›gnp‹U+0007› <img" }).click();
    await expect
      .poll(() => page.getByRole("heading", { level: 1 }).textContent())
      .toContain("‹U+202E›gnp‹U+0007› <img");
    await page.getByRole("button", { name: "Approve" }).click();
    const dialog = page.getByRole("dialog", { name: "Approve" });
    const choice = dialog.getByLabel("Decide as");
    expect(await choice.getByRole("option").allTextContents()).toEqual(["an‹U+200B›na", "anna"]);
    await dialog.getByText("Subject: ‹U+202E›gnp‹U+0007›").waitFor();
    await expectAccessible(page);
    await choice.selectOption({ label: "anna" });
    await dialog.getByRole("button", { name: "Approve" }).click();
    await page.locator(".page-head .tag", { hasText: "Approved" }).waitFor();
    expect(await page.locator("main img").count()).toBe(0);
    expect(await page.title()).not.toBe("run");
    const { review } = await platform.clients.reviews.getReview({ reviewId });
    expect(review?.decidedBy).toBe("anna");
  });

  test("a review is decided by keyboard", async () => {
    const { page, open } = opened;
    const reviewId = await create("Check the wall", ["anna"]);
    await open(`#/reviews/${reviewId}`);
    await page.getByRole("button", { name: "Reject" }).focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Reject" });
    await dialog.getByLabel("Reason").focus();
    await page.keyboard.type("wrong color");
    await page.keyboard.press("Tab");
    await expect.poll(() => page.evaluate("document.activeElement?.tagName")).toBe("BUTTON");
    await dialog.getByRole("button", { name: "Reject" }).focus();
    await page.keyboard.press("Enter");
    await page.locator(".page-head .tag", { hasText: "Rejected" }).waitFor();
    const { review } = await platform.clients.reviews.getReview({ reviewId });
    expect(review?.reason).toBe("wrong color");
  });

  test("a proposed grant states the effect of its approval, and is granted", async () => {
    const { page, open } = opened;
    const { proposal } = await platform.clients.proposals.createProposal({
      ...{ requestId: crypto.randomUUID(), justification: "she maintains its agents" },
      grant: { case: "organizationProof", value: { organization: "acme", principal: "ada" } },
    });
    await open("#/reviews");
    await page.getByRole("link", { name: "ada acts for the organization acme" }).click();
    await page.getByRole("heading", { name: "Proposal" }).waitFor();
    await page.getByText("Proposed grant").waitFor();
    await page.getByText("she maintains its agents").waitFor();
    await page.getByRole("button", { name: "Approve" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("The platform makes the grant in your name.").waitFor();
    await dialog.getByRole("button", { name: "Approve" }).click();
    await page.locator(".page-head .tag", { hasText: "Approved" }).waitFor();
    const id = proposal?.id ?? "";
    const stateOf = async () =>
      (await platform.clients.proposals.getProposal({ proposalId: id })).proposal?.state;
    await expect.poll(stateOf, { timeout: 10_000 }).toBe(2);
  });
});
