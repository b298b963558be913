// Leaving and coming back in mid-stream: whoever comes late ends with the page of one who watched from the start.

import type { BrowserContext, Page } from "@playwright/test";

import { answering, asked, begin, FIRST_QUESTION, log, open, settled, shownText } from "./support/lesson";
import { expect, test } from "./support/server";

test.use({ serverEnv: { LEARNHARNESS_LESSON_PACE_MS: "60" } });

/** A second page that has watched the chat since its first words. */
async function watcher(context: BrowserContext, page: Page): Promise<Page> {
  const second = await context.newPage();
  await open(second, page.url());
  return second;
}

async function midStream(page: Page): Promise<void> {
  await expect(log(page)).toContainText("follow a written lesson");
  await expect(page.locator("main")).toHaveAttribute("data-status", "streaming");
}

test("a page that is reloaded in mid-stream goes on to the same end", async ({ context, page }) => {
  await begin(page);
  const stayed = await watcher(context, page);
  await midStream(page);
  const before = await shownText(page);
  await page.reload();
  await answering(page);
  await expect(page.locator("main")).toHaveAttribute("data-status", "streaming");
  await asked(page, FIRST_QUESTION);
  await asked(stayed, FIRST_QUESTION);
  const after = await shownText(page);
  expect(after).toBe(await shownText(stayed));
  expect(after.length).toBeGreaterThan(before.length);
});

test("leaving to the home page and coming back by the list of chats changes nothing", async ({ context, page }) => {
  await begin(page);
  const stayed = await watcher(context, page);
  await midStream(page);
  await page.getByRole("link", { name: "learnharness", exact: true }).click();
  await expect(page.getByRole("heading", { name: "What do you want to learn?" })).toBeVisible();
  await page.getByRole("navigation", { name: "Chats" }).getByRole("link", { name: /teach me fractions/ }).click();
  await expect(page.locator("main")).toHaveAttribute("data-status", "streaming");
  await asked(page, FIRST_QUESTION);
  await asked(stayed, FIRST_QUESTION);
  expect(await shownText(page)).toBe(await shownText(stayed));
});

test("a reader who opens the page in mid-stream ends with the same text", async ({ context, page }) => {
  await begin(page);
  await midStream(page);
  const late = await watcher(context, page);
  await asked(page, FIRST_QUESTION);
  await asked(late, FIRST_QUESTION);
  expect(await shownText(late)).toBe(await shownText(page));
  const fresh = await watcher(context, page);
  await settled(fresh);
  expect(await shownText(fresh)).toBe(await shownText(page));
});

test("the end stays in sight while words come, until the learner scrolls away", async ({ page }) => {
  await page.setViewportSize({ width: 900, height: 420 });
  const fromEnd = () =>
    page.evaluate(() => document.documentElement.scrollHeight - window.scrollY - window.innerHeight);
  await begin(page);
  await expect(log(page)).toContainText("from the ground up");
  await expect.poll(fromEnd).toBeLessThan(60);
  await page.mouse.move(400, 150);
  await page.mouse.wheel(0, -4000);
  await expect.poll(() => page.evaluate(() => window.scrollY)).toBe(0);
  const length = (await shownText(page)).length;
  await expect.poll(async () => (await shownText(page)).length).toBeGreaterThan(length + 60);
  expect(await page.evaluate(() => window.scrollY)).toBe(0);
  await page.mouse.wheel(0, 8000);
  await asked(page, FIRST_QUESTION);
  await expect.poll(fromEnd).toBeLessThan(5);
});

test("a page that is opened in mid-stream does not jump", async ({ page }) => {
  await begin(page);
  await midStream(page);
  await page.addInitScript(() => {
    const shifts: number[] = [];
    Object.assign(window, { shifts });
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) shifts.push((entry as PerformanceEntry & { value: number }).value);
    }).observe({ type: "layout-shift", buffered: true });
  });
  await page.reload();
  await asked(page, FIRST_QUESTION);
  const shifts = await page.evaluate(() => (window as unknown as { shifts: number[] }).shifts);
  expect(Math.max(0, ...shifts), `layout shifts ${shifts}`).toBeLessThan(0.1);
});
