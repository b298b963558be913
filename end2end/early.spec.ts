// A slow line: what is done on a page before its program has come stays done when it comes.

import type { Page } from "@playwright/test";

import { answering, asked, begin, button, FIRST_QUESTION, message, question } from "./support/lesson";
import { expect, test } from "./support/server";

/** Holds back the program of the pages that are opened from now on. */
async function slow(page: Page): Promise<{ arrive(): void }> {
  let arrive = () => {};
  const arrived = new Promise<void>((done) => (arrive = done));
  await page.route(/\.wasm$/, async (route) => {
    await arrived;
    await route.continue();
  });
  return { arrive: () => arrive() };
}

test("the words of a first lesson", async ({ page }) => {
  const line = await slow(page);
  await page.goto("/");
  await message(page).pressSequentially("teach me ");
  line.arrive();
  await message(page).pressSequentially("fractions, slowly and with many words, please", { delay: 20 });
  await answering(page);
  await expect(message(page)).toHaveValue("teach me fractions, slowly and with many words, please");
  await expect(button(page, "Start")).toBeEnabled();
});

test("words and choices in a lesson; words win over an older draft", async ({ page }) => {
  await begin(page);
  await asked(page, FIRST_QUESTION);
  await message(page).fill("an older draft");
  const line = await slow(page);
  await page.goto(page.url());
  const option = question(page).getByRole("radio").nth(1);
  await message(page).fill("half a thought");
  await option.check();
  line.arrive();
  await answering(page);
  await expect(message(page)).toHaveValue("half a thought");
  await expect(button(page, "Send")).toBeEnabled();
  await expect(option).toBeChecked();
  await expect(option).toBeFocused();
  await button(question(page), "Answer").click();
  await asked(page, /A cake is cut/);
  await page.reload();
  await answering(page);
  await expect(message(page)).toHaveValue("half a thought");
});

test("own words in a question", async ({ page }) => {
  await begin(page);
  await asked(page, FIRST_QUESTION);
  const line = await slow(page);
  await page.goto(page.url());
  const words = question(page).getByRole("textbox");
  await words.fill("to cook");
  line.arrive();
  await answering(page);
  await expect(words).toHaveValue("to cook");
  await expect(words).toBeFocused();
  await expect(button(question(page), "Answer")).toBeEnabled();
});
