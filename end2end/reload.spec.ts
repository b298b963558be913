// Leaving and coming back in mid-stream: whoever comes late ends with the page of one who watched from the start.
// The model is held at a gate in the middle of its answer, so that "mid-stream" lasts as long as the story needs.

import type { BrowserContext, Page } from "@playwright/test";

import { answering, begin, chatOf, chatView, log, open, settled, shownText } from "./support/lesson";
import { deltas, expect, finish, type Gate, gate, modelTest as test, type ScriptedModel, stream } from "./support/model";

const FIRST = "The tide comes in twice a day, and the moon has a hand in it. ".repeat(6);
const REST = "That is why the table of tides looks so regular. ".repeat(6);

/** A second page that has watched the chat since its first words. */
async function watcher(context: BrowserContext, page: Page): Promise<Page> {
  const second = await context.newPage();
  await open(second, page.url());
  return second;
}

/** Begins a chat whose teacher is held in the middle of its answer. */
async function heldInMidStream(model: ScriptedModel, page: Page): Promise<Gate> {
  const held = gate();
  model.queue(stream([...deltas(FIRST), held, ...deltas(REST), finish("stop")]));
  await begin(page, "teach me tides");
  await held.reached();
  await showsFirstHalf(page);
  return held;
}

async function showsFirstHalf(page: Page): Promise<void> {
  await expect(log(page)).toContainText(FIRST.trim());
  await expect(page.locator("main")).toHaveAttribute("data-status", "streaming");
}

async function ended(page: Page): Promise<void> {
  await expect(log(page)).toContainText(REST.trim());
  await settled(page);
}

test("a page that is reloaded in mid-stream goes on to the same end", async ({ context, model, page }) => {
  const held = await heldInMidStream(model, page);
  const stayed = await watcher(context, page);
  await showsFirstHalf(stayed);
  await page.reload();
  await answering(page);
  await showsFirstHalf(page);
  held.open();
  await ended(page);
  await ended(stayed);
  expect(await shownText(page)).toBe(await shownText(stayed));
});

test("a tab that is closed stops nothing: who comes back before the end sees it go on", async ({ context, model, page }) => {
  const held = await heldInMidStream(model, page);
  const address = page.url();
  await page.close();
  const back = await context.newPage();
  await open(back, address);
  await showsFirstHalf(back);
  held.open();
  await ended(back);
});

test("and who comes back after the end finds it whole", async ({ context, model, page, server }) => {
  const held = await heldInMidStream(model, page);
  const address = page.url();
  const chat = chatOf(page);
  await page.close();
  held.open();
  await expect.poll(async () => (await chatView(server, chat)).running).toBe(false);
  const back = await context.newPage();
  await open(back, address);
  await ended(back);
  await expect(log(back)).toContainText("teach me tides");
});

test("leaving to the home page and coming back by the list of chats changes nothing", async ({ context, model, page }) => {
  const held = await heldInMidStream(model, page);
  const stayed = await watcher(context, page);
  await page.getByRole("link", { name: "learnharness", exact: true }).click();
  await expect(page.getByRole("heading", { name: "What do you want to learn?" })).toBeVisible();
  await page.getByRole("navigation", { name: "Chats" }).getByRole("link", { name: /teach me tides/ }).click();
  await answering(page);
  await showsFirstHalf(page);
  held.open();
  await ended(page);
  await ended(stayed);
  expect(await shownText(page)).toBe(await shownText(stayed));
});

test("a reader who opens the page in mid-stream ends with the same text", async ({ context, model, page }) => {
  const held = await heldInMidStream(model, page);
  const late = await watcher(context, page);
  await showsFirstHalf(late);
  held.open();
  await ended(page);
  await ended(late);
  expect(await shownText(late)).toBe(await shownText(page));
  const fresh = await watcher(context, page);
  await ended(fresh);
  expect(await shownText(fresh)).toBe(await shownText(page));
});

test("going from one lesson to another shows the other, and back", async ({ model, page }) => {
  model.queue(stream([...deltas("All about tides."), finish("stop")]), stream([...deltas("All about winds."), finish("stop")]));
  await begin(page, "teach me tides");
  await settled(page);
  await begin(page, "teach me winds");
  await expect(log(page)).toContainText("All about winds.");
  await settled(page);
  const chats = page.getByRole("navigation", { name: "Chats" });
  for (const [name, words] of [["tides", "All about tides."], ["winds", "All about winds."], ["tides", "All about tides."]]) {
    await chats.getByRole("link", { name: new RegExp(`teach me ${name}`) }).click();
    await answering(page);
    await expect(log(page)).toContainText(words);
    await expect(page.getByRole("heading", { level: 1 })).toHaveText(`teach me ${name}`);
  }
  await page.goBack();
  await answering(page);
  await expect(log(page)).toContainText("All about winds.");
});

test("a lesson's page is rendered every time that it is asked for", async ({ model, page, server }) => {
  model.queue(stream([...deltas("All about tides."), finish("stop")]));
  const chat = await begin(page, "teach me tides");
  await settled(page);
  for (let load = 0; load < 40; load += 1) {
    const response = await fetch(`${server.url}/chat/${chat}`);
    expect(response.status).toBe(200);
    expect(await response.text()).toContain("All about tides.");
  }
});

test("words are followed until the learner's own reach the top, and no longer once the learner scrolls", async ({ model, page }) => {
  await page.setViewportSize({ width: 900, height: 620 });
  const fromEnd = () =>
    page.evaluate(() => document.documentElement.scrollHeight - window.scrollY - window.innerHeight);
  const said = page.locator(".said").last();
  const top = () => said.evaluate((element) => element.getBoundingClientRect().top);
  const held = await heldInMidStream(model, page);
  await expect.poll(fromEnd).toBeLessThan(60);
  await page.setViewportSize({ width: 900, height: 360 });
  await expect.poll(top).toBeLessThan(100);
  expect(await top()).toBeGreaterThan(0);
  await page.mouse.move(400, 100);
  await page.mouse.wheel(0, -4000);
  await expect.poll(() => page.evaluate(() => window.scrollY)).toBe(0);
  held.open();
  await ended(page);
  expect(await page.evaluate(() => window.scrollY)).toBe(0);
});

test("who has read on to the end is not taken back", async ({ model, page }) => {
  await page.setViewportSize({ width: 900, height: 360 });
  model.queue(stream([...deltas(FIRST + REST), finish("stop")]));
  await begin(page, "teach me tides");
  await settled(page);
  await page.mouse.move(400, 100);
  await page.mouse.wheel(0, 4000);
  const fromEnd = () =>
    page.evaluate(() => document.documentElement.scrollHeight - window.scrollY - window.innerHeight);
  await expect.poll(fromEnd).toBeLessThan(2);
  // The page looks for news from time to time.
  for (let looks = 0; looks < 2; looks += 1) await page.waitForResponse(/\/api\/chats\/\w+\?after=/);
  await expect.poll(fromEnd).toBeLessThan(2);
});

test("a page that is opened in mid-stream does not jump", async ({ model, page }) => {
  const held = await heldInMidStream(model, page);
  await page.addInitScript(() => {
    const shifts: number[] = [];
    Object.assign(window, { shifts });
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) shifts.push((entry as PerformanceEntry & { value: number }).value);
    }).observe({ type: "layout-shift", buffered: true });
  });
  await page.reload();
  await answering(page);
  await showsFirstHalf(page);
  held.open();
  await ended(page);
  const shifts = await page.evaluate(() => (window as unknown as { shifts: number[] }).shifts);
  expect(Math.max(0, ...shifts), `layout shifts ${shifts}`).toBeLessThan(0.1);
});
