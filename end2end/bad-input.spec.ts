// What a learner can do wrong, or twice: the page helps, loses nothing, and one deed has one effect.

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
    await begin(page);
    await asked(page, FIRST_QUESTION);
    const other = await context.newPage();
    await open(other, page.url());
    await asked(other, FIRST_QUESTION);
    await Promise.all([choose(page, "School or an exam"), choose(other, "Filling an old gap")]);
    await asked(page, fractions.probe[0].question);
    await asked(other, fractions.probe[0].question);
    expect(await shownText(page)).toBe(await shownText(other));
    const { messages } = await chatView(server, chatOf(page));
    expect(messages.filter(({ message }) => message.role === "toolResult")).toHaveLength(1);
  });
});
