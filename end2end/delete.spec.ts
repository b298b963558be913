// A lesson that is deleted: gone from the list, and brought back as long as one can; a page that shows it says so in place.

import type { Page } from "@playwright/test";

import { asked, begin, button, chatOf, FIRST_QUESTION, log, message, open, post, settled, status } from "./support/lesson";
import { deltas, finish, gate, modelTest, stream } from "./support/model";
import { expect, test } from "./support/server";

const expectedComplaints = [/Failed to load resource.*404/];

const chats = (page: Page) => page.getByRole("navigation", { name: "Chats" });
const entry = (page: Page) => chats(page).getByRole("link", { name: /teach me/ });

test("a lesson is deleted in the list and brought back by keyboard", async ({ page }) => {
  await begin(page);
  await asked(page, FIRST_QUESTION);
  await open(page, "/");
  const remove = chats(page).getByRole("button", { name: "Delete “teach me fractions”" });
  await remove.focus();
  await page.keyboard.press("Enter");
  await expect(entry(page)).toHaveCount(0);
  await expect(chats(page).getByRole("status")).toContainText("Deleted “teach me fractions”.");
  await expect(button(chats(page), "Undo")).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(entry(page)).toBeFocused();
  await expect(chats(page).getByRole("status")).toBeEmpty();
  await page.keyboard.press("Enter");
  await asked(page, FIRST_QUESTION);
});

test.describe("a page of a lesson", () => {
  test.use({ expectedComplaints });

  test("that was deleted elsewhere says so, keeps what was typed, and can bring it back", async ({ page, server }) => {
    await begin(page);
    await asked(page, FIRST_QUESTION);
    await message(page).fill("half a thought");
    expect((await post(server, "/api/chats/delete", { chatId: chatOf(page) })).status).toBe(200);
    await expect(status(page)).toHaveText("This lesson was deleted. What you have typed stays here.");
    await expect(message(page)).toHaveValue("half a thought");
    await expect(button(page, "Send")).toBeDisabled();
    await expect(page.locator(".dock").getByRole("link", { name: "Start a new lesson" })).toBeVisible();
    await button(page, "Restore").click();
    await expect(status(page)).toHaveText("A question waits for you.");
    await expect(message(page)).toHaveValue("half a thought");
    await button(page, "Send").click();
    await expect(log(page)).toContainText("half a thought");
    await asked(page, FIRST_QUESTION);
  });

  test("that was deleted elsewhere leaves the list, and comes back with it when it is restored elsewhere", async ({ page, server }) => {
    const chat = await begin(page);
    await asked(page, FIRST_QUESTION);
    await post(server, "/api/chats/delete", { chatId: chat });
    await expect(status(page)).toContainText("This lesson was deleted.");
    await expect(entry(page)).toHaveCount(0);
    await post(server, "/api/chats/restore", { chatId: chat });
    await expect(status(page)).toHaveText("A question waits for you.");
    await expect(entry(page)).toHaveCount(1);
  });

  test("that was opened after its deletion shows the lesson when it is restored elsewhere", async ({ page, server }) => {
    const chat = await begin(page);
    await asked(page, FIRST_QUESTION);
    await post(server, "/api/chats/delete", { chatId: chat });
    await open(page, `/chat/${chat}`);
    await expect(page.getByRole("heading", { name: "This lesson was deleted" })).toBeVisible();
    await post(server, "/api/chats/restore", { chatId: chat });
    await asked(page, FIRST_QUESTION);
    await expect(entry(page)).toHaveCount(1);
  });

  test("is told at once when it is deleted in its own list", async ({ page }) => {
    await begin(page);
    await asked(page, FIRST_QUESTION);
    await chats(page).getByRole("listitem").hover();
    await chats(page).getByRole("button", { name: /Delete/ }).click();
    await expect(status(page)).toContainText("This lesson was deleted.");
    await button(chats(page), "Undo").click();
    await expect(status(page)).toHaveText("A question waits for you.");
  });

  test("that was deleted answers 404, and can be restored from there", async ({ page, server }) => {
    const chat = await begin(page);
    await asked(page, FIRST_QUESTION);
    await post(server, "/api/chats/delete", { chatId: chat });
    const response = await page.goto(`/chat/${chat}`);
    expect(response?.status()).toBe(404);
    await expect(page.getByRole("heading", { name: "This lesson was deleted" })).toBeVisible();
    await expect(page.locator("html")).toHaveAttribute("data-hydrated", "true");
    await button(page, "Restore").click();
    await asked(page, FIRST_QUESTION);
    await expect(entry(page)).toHaveCount(1);
  });
});

modelTest("the list says that a lesson is at work from its beginning on", async ({ model, page }) => {
  const held = gate();
  model.queue(stream([...deltas("All about tides."), finish("stop")]), stream([...deltas("Twice"), held, finish("stop")]));
  await begin(page, "teach me tides");
  await settled(page);
  await expect(entry(page)).toContainText("finding out what you know");
  await message(page).fill("how often?");
  await button(page, "Send").click();
  await held.reached();
  await expect(entry(page)).toContainText("your teacher is writing");
  held.open();
  await expect(entry(page)).toContainText("finding out what you know");
});

modelTest.describe("a lesson whose teacher writes", () => {
  modelTest.use({ expectedComplaints });

  modelTest("is stopped when it is deleted in another tab", async ({ context, model, page }) => {
    const held = gate();
    model.queue(stream([...deltas("The tide comes in"), held, ...deltas("twice a day."), finish("stop")]));
    await begin(page, "teach me tides");
    await expect(log(page)).toContainText("The tide comes in");
    const other = await context.newPage();
    await open(other, "/");
    await chats(other).getByRole("listitem").hover();
    await chats(other).getByRole("button", { name: /Delete/ }).click();
    await expect(status(page)).toContainText("This lesson was deleted.");
    expect(await model.requests[0].aborted).toBe(true);
    await expect(log(page)).toContainText("The tide comes in");
    await button(chats(other), "Undo").click();
    await entry(other).click();
    await settled(other);
    await expect(log(other)).toContainText("You stopped the teacher here.");
  });
});
