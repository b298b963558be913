// What a learner can do wrong, or twice: the page helps, loses nothing, and one deed has one effect.

import type { BrowserContext, Page } from "@playwright/test";

import {
  asked, begin, button, chatOf, chatView, choose, FIRST_QUESTION, fractions, log, message, open, question, shownText,
} from "./support/lesson";
import { expect, test } from "./support/server";

test.describe("addresses", () => {
  test.use({ expectedComplaints: [/Failed to load resource.*404/] });

  for (const address of ["/chat/nothing", "/nowhere/at/all"]) {
    test(`${address} is not found, and says where to go`, async ({ page }) => {
      const response = await page.goto(address);
      expect(response?.status()).toBe(404);
      await expect(page.getByRole("heading", { name: "There is nothing here" })).toBeVisible();
      await page.getByRole("link", { name: "Start a new lesson" }).click();
      await expect(page.getByRole("heading", { name: "What do you want to learn?" })).toBeVisible();
    });
  }
});

test("nothing can be sent while there are no words", async ({ page, server }) => {
  await open(page, "/");
  for (const nothing of ["", "   ", "\n"]) {
    await message(page).fill(nothing);
    await expect(button(page, "Start")).toBeDisabled();
    await message(page).press("Enter");
  }
  expect(await (await fetch(`${server.url}/api/chats`)).json()).toEqual([]);
  await begin(page);
  await asked(page, FIRST_QUESTION);
  await expect(button(page, "Send")).toBeDisabled();
  await expect(button(question(page), "Answer")).toBeDisabled();
});

test.describe("a text that is too long", () => {
  test.use({ expectedComplaints: [/Failed to load resource.*413/] });

  test("is refused in plain words, and stays", async ({ page }) => {
    await begin(page);
    await asked(page, FIRST_QUESTION);
    const long = "word ".repeat(200_000);
    await message(page).fill(long);
    await button(page, "Send").click();
    await expect(page.locator(".dock").getByRole("alert")).toContainText("longer than");
    await expect(message(page)).toHaveValue(long);
    await expect(question(page)).toBeVisible();
    await expect(log(page)).not.toContainText("word word");
  });
});

test("a double click on Answer is one answer", async ({ page, server }) => {
  await begin(page);
  await asked(page, FIRST_QUESTION);
  await question(page).getByRole("radio").first().check();
  await button(question(page), "Answer").dblclick();
  await asked(page, fractions.probe[0].question);
  const { messages } = await chatView(server, chatOf(page));
  expect(messages.filter(({ message }) => message.role === "toolResult")).toHaveLength(1);
  expect(messages.filter(({ message }) => message.role === "assistant")).toHaveLength(2);
});

test("a double click on Send is one message", async ({ page, server }) => {
  await begin(page);
  await asked(page, FIRST_QUESTION);
  await message(page).fill("wait a moment");
  await button(page, "Send").dblclick();
  await asked(page, FIRST_QUESTION);
  const { messages } = await chatView(server, chatOf(page));
  expect(messages.filter(({ message }) => message.role === "user")).toHaveLength(2);
});

test("a double click on Start is one chat", async ({ page, server }) => {
  await open(page, "/");
  await message(page).fill("teach me fractions");
  await button(page, "Start").dblclick();
  await asked(page, FIRST_QUESTION);
  expect(await (await fetch(`${server.url}/api/chats`)).json()).toHaveLength(1);
});

test.describe("two tabs", () => {
  test.use({ expectedComplaints: [/Failed to load resource.*(409|422)/] });

  test("that answer the same question at once have one effect, and end equal", async ({ context, page, server }) => {
    const other = await beginInTwoTabs(context, page);
    await Promise.all([choose(page, "School or an exam"), choose(other, "Filling an old gap")]);
    await asked(page, fractions.probe[0].question);
    await asked(other, fractions.probe[0].question);
    expect(await shownText(page)).toBe(await shownText(other));
    const { messages } = await chatView(server, chatOf(page));
    const results = messages.filter(({ message }) => message.role === "toolResult");
    expect(results).toHaveLength(1);
    // Who came too late is told what counts.
    const { answer } = results[0].message.details as { answer: { values: string[] } };
    const told = [page, other].map((each) => each.locator(".dock").getByRole("alert"));
    await expect.poll(async () => (await told[0].count()) + (await told[1].count())).toBe(1);
    const loser = (await told[0].count()) === 1 ? told[0] : told[1];
    await expect(loser).toHaveText(`This question was answered before yours came: “${answer.values[0]}”. That answer counts.`);
  });

  test("of which one is behind: its answer shows at once, and gives way to the one that counts", async ({ context, page }) => {
    const other = await beginInTwoTabs(context, page);
    const held = await holdBack(page);
    await choose(other, "School or an exam");
    await asked(other, fractions.probe[0].question);
    await choose(page, "Filling an old gap");
    await expect(log(page)).toContainText("You answered Filling an old gap.");
    held.release();
    await asked(page, fractions.probe[0].question);
    await expect(log(page)).toContainText("You answered School or an exam.");
    await expect(log(page)).not.toContainText("Filling an old gap");
    await expect(page.locator(".dock").getByRole("alert")).toContainText("“School or an exam”. That answer counts.");
    await choose(page, "9/4");
    await expect(page.locator(".dock").getByRole("alert")).toHaveCount(0);
    await asked(page, fractions.probe[1].question);
  });

  test("of which one moves on: an answer to what was closed is refused in words", async ({ context, page, server }) => {
    const other = await beginInTwoTabs(context, page);
    const held = await holdBack(page);
    await message(other).fill("wait a moment");
    await button(other, "Send").click();
    await expect(log(other)).toContainText("wait a moment");
    await asked(other, FIRST_QUESTION);
    await choose(page, "School or an exam");
    held.release();
    await expect(page.locator(".dock").getByRole("alert")).toContainText("closed without an answer");
    await asked(page, FIRST_QUESTION);
    await expect(log(page)).not.toContainText("You answered");
    expect(await shownText(page)).toBe(await shownText(other));
    const { messages } = await chatView(server, chatOf(page));
    expect(messages.filter(({ message }) => message.role === "user")).toHaveLength(2);
  });

  test("of which one is at work: the other keeps its words, says why, and follows", async ({ context, page, server }) => {
    const other = await beginInTwoTabs(context, page);
    const held = await holdBack(other);
    const busy = { error: { kind: "busy", message: "The teacher is still at work in this chat.", runId: "r" } };
    await other.route("**/api/chat", (route) => route.fulfill({ status: 409, json: busy }));
    await choose(page, "School or an exam");
    await message(other).fill("wait a moment");
    await button(other, "Send").click();
    held.release();
    await expect(other.locator(".dock").getByRole("alert")).toContainText("still at work");
    await expect(message(other)).toHaveValue("wait a moment");
    await asked(other, fractions.probe[0].question);
    const { messages } = await chatView(server, chatOf(page));
    expect(messages.filter(({ message }) => message.role === "user")).toHaveLength(1);
  });
});

/** Begins a lesson in a page, and gives a second one that shows its first question as well. */
async function beginInTwoTabs(context: BrowserContext, page: Page): Promise<Page> {
  await begin(page);
  await asked(page, FIRST_QUESTION);
  const other = await context.newPage();
  await open(other, page.url());
  await asked(other, FIRST_QUESTION);
  return other;
}

/** Holds back what a page asks and sends, until it is released: the page lives in the past. */
async function holdBack(page: Page): Promise<{ release(): void }> {
  let release = () => {};
  const released = new Promise<void>((done) => (release = done));
  const address = /\/api\/chat(s\/\w+\?.*)?$/;
  await page.route(address, async (route) => {
    await released;
    await route.fallback();
  });
  return { release: () => release() };
}
