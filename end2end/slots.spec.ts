// Many pages of one browser at once: a browser opens six connections to a server, and streams must not take them all.

import type { Page } from "@playwright/test";

import { answering, begin, button, chatOf, chatView, log, message, open, settled, setVisibility, status } from "./support/lesson";
import { deltas, finish, type Gate, gate, type ScriptedModel, stream, text } from "./support/model";
import { expect, proxiedTest as test } from "./support/proxy";

const WORDS = "The tide comes in twice a day.";
const REST = "The moon has a hand in it.";

/** Begins a chat whose teacher is held in the middle of its answer. */
async function held(model: ScriptedModel, page: Page): Promise<Gate> {
  const closed = gate();
  model.queue(stream([...deltas(WORDS), closed, ...deltas(REST), finish("stop")]));
  await begin(page, "teach me tides");
  await closed.reached();
  return closed;
}

/** Milliseconds until a page that has no connection left would be given up. */
const EVER = 20_000;

/** Bytes that the page's scripts hold. */
async function memory(page: Page): Promise<number> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("HeapProfiler.collectGarbage");
  const { usedSize } = await devtools.send("Runtime.getHeapUsage");
  await devtools.detach();
  return usedSize;
}

test.describe("eight pages of lessons that go on", () => {
  test.setTimeout(120_000);

  test("share four streams, and each loads, sends and stops", async ({ context, model, page, network }) => {
    const pages = [page];
    const gates = [await held(model, page)];
    while (pages.length < 8) {
      const next = await context.newPage();
      pages.push(next);
      gates.push(await held(model, next));
    }
    await expect.poll(() => network.open).toBe(4);
    for (const each of pages) await expect(each.locator("main")).toHaveAttribute("data-status", "streaming");

    const last = pages[7];
    await last.goto(last.url(), { timeout: EVER });
    await answering(last);
    await button(last, "Stop").click();
    await expect(log(last)).toContainText("You stopped the teacher here.", { timeout: EVER });
    await settled(last);
    model.queue(text("Here I am."));
    await message(last).fill("are you there?");
    await button(last, "Send").click();
    await expect(log(last)).toContainText("Here I am.", { timeout: EVER });
    await settled(last);
    expect(network.open).toBe(4);

    // A page that only looks sees the end as well, and a slot that gets free is taken.
    for (const closed of gates.slice(0, 4)) closed.open();
    for (const each of pages.slice(0, 4)) await expect(log(each)).toContainText(REST);
    await expect.poll(() => network.open).toBe(3);
    for (const closed of gates.slice(4)) closed.open();
    for (const each of pages.slice(4, 7)) await expect(log(each)).toContainText(REST);
    for (const each of pages) await settled(each);
    await expect.poll(() => network.open).toBe(0);
  });
});

test("a browser without locks streams all the same", async ({ model, page, network }) => {
  await page.addInitScript(() => Object.defineProperty(navigator, "locks", { value: undefined }));
  const closed = await held(model, page);
  await expect.poll(() => network.open).toBe(1);
  await expect(log(page)).toContainText(WORDS);
  closed.open();
  await expect(log(page)).toContainText(REST);
  await settled(page);
});

test("a page that is hidden holds no stream, and is right when it is shown again", async ({ model, page, network }) => {
  const closed = await held(model, page);
  await expect.poll(() => network.open).toBe(1);
  await setVisibility(page, "hidden");
  await expect.poll(() => network.open).toBe(0);
  await setVisibility(page, "visible");
  await expect.poll(() => network.open).toBe(1);
  await setVisibility(page, "hidden");
  closed.open();
  await expect.poll(() => network.open).toBe(0);
  await setVisibility(page, "visible");
  await expect(log(page)).toContainText(REST);
  await settled(page);
  await expect(log(page).getByText(WORDS)).toHaveCount(1);
});

test("a page that the browser freezes is right when it goes on", async ({ context, model, network, page, server }) => {
  const closed = await held(model, page);
  await expect.poll(() => network.open).toBe(1);
  const devtools = await context.newCDPSession(page);
  await devtools.send("Page.setWebLifecycleState", { state: "frozen" });
  const chat = chatOf(page);
  closed.open();
  await expect.poll(async () => (await chatView(server, chat)).running).toBe(false);
  await devtools.send("Page.setWebLifecycleState", { state: "active" });
  await expect(log(page)).toContainText(REST);
  await settled(page);
  await expect(log(page).getByText(WORDS)).toHaveCount(1);
});

test.describe("a lesson that is opened and left while it streams", () => {
  test.setTimeout(120_000);

  test("fifty times keeps one stream, and nothing is called that is gone", async ({ model, page, network, server }) => {
    const closed = await held(model, page);
    const chat = chatOf(page);
    const visit = async (rounds: number) => {
      for (let round = 0; round < rounds; round += 1) {
        await page.getByRole("link", { name: "learnharness", exact: true }).click();
        await page.waitForURL(/\/$/);
        await page.goBack();
        await page.waitForURL(new RegExp(chat));
      }
    };
    await visit(5);
    const early = await memory(page);
    await visit(45);
    expect(await memory(page)).toBeLessThan(1.5 * early);
    await answering(page);
    await expect(log(page)).toContainText(WORDS);
    await expect.poll(() => network.open).toBe(1);
    closed.open();
    await page.getByRole("link", { name: "learnharness", exact: true }).click();
    await expect(page.getByRole("heading", { name: "What do you want to learn?" })).toBeVisible();
    await expect.poll(() => network.open).toBe(0);
    await page.goBack();
    await expect(log(page)).toContainText(REST);
    await settled(page);
    await expect(log(page).getByText(WORDS)).toHaveCount(1);
    expect(server.log()).not.toContain("panicked");
  });

  test("and another one in between mixes nothing", async ({ model, page, network }) => {
    model.queue(text("All about winds."));
    await begin(page, "teach me winds");
    await settled(page);
    const winds = page.url();
    const closed = await held(model, page);
    const tides = page.url();
    for (let round = 0; round < 6; round += 1) {
      await open(page, winds);
      await expect(log(page)).toContainText("All about winds.");
      await expect(log(page)).not.toContainText(WORDS);
      await page.goBack();
      await page.goto(tides);
      await expect(log(page)).toContainText(WORDS);
      await expect(log(page)).not.toContainText("winds");
    }
    await expect.poll(() => network.open).toBe(1);
    closed.open();
    await expect(log(page)).toContainText(REST);
  });
});

test.describe("a provider that asks to wait", () => {
  test("is waited for on pages that stream and on those that look, and a second page stops it", async ({ context, model, page }) => {
    model.queue({ status: 429, headers: { "retry-after": "50", "content-type": "application/json" }, body: { error: { message: "slow down" } } });
    await begin(page, "teach me tides");
    await expect(status(page)).toContainText("Trying again in 50 s.");
    const other = await context.newPage();
    // Without a slot it looks.
    await other.addInitScript(() => {
      Object.defineProperty(navigator, "locks", { value: { request: async (...[, , granted]: unknown[]) => (granted as (lock: null) => void)(null) } });
    });
    await open(other, page.url());
    await expect(status(other)).toContainText("slow down");
    await expect(status(other)).toContainText("Trying again in 50 s.");
    await button(other, "Stop").click();
    for (const each of [page, other]) {
      await expect(log(each)).toContainText("You stopped the teacher here.", { timeout: 3_000 });
      await settled(each);
      await expect(message(each)).toBeEnabled();
    }
    expect(model.requests).toHaveLength(1);
  });
});
