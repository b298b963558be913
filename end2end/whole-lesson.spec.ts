// Whole lessons to their summaries: one by keyboard alone, one by a learner who knows nothing yet.

import type { Page } from "@playwright/test";

import {
  answering, begin, button, chatOf, chatView, fractions, log, message, plan, progress, question, type Quiz, settled,
} from "./support/lesson";
import { expect, test } from "./support/server";

test.setTimeout(120_000);

/** What the learner has before them when the teacher is done for now. */
type Before = "question" | "plan" | "nothing";

async function before(page: Page, last: string): Promise<Before> {
  await expect(async () => {
    await expect(page.locator("main")).toHaveAttribute("data-status", "ready", { timeout: 1 });
    expect(await legend(page)).not.toBe(last);
  }).toPass({ timeout: 30_000 });
  if (await question(page).count()) return "question";
  return (await button(page, "Accept plan").count()) ? "plan" : "nothing";
}

async function legend(page: Page): Promise<string> {
  return (await question(page).locator("legend").allInnerTexts()).join("");
}

/** Presses what answers a question that has the focus. */
async function type(page: Page, quiz: Quiz | undefined): Promise<void> {
  if (quiz && quiz.options.length === 0) {
    await page.keyboard.type(quiz.correct[0]);
  } else {
    const options = await question(page).locator("input[type=radio], input[type=checkbox]").evaluateAll((inputs) =>
      inputs.map((input) => (input as HTMLInputElement).value),
    );
    for (const right of quiz?.correct ?? [options[0]]) await page.keyboard.press(String(options.indexOf(right) + 1));
  }
  await page.keyboard.press("Enter");
}

test("a lesson goes from the home page to its summary by keyboard alone", async ({ page, server }) => {
  await page.goto("/");
  await answering(page);
  for (let tabs = 0; tabs < 8 && !(await focused(page, "textarea")); tabs += 1) await page.keyboard.press("Tab");
  await expect(message(page)).toBeFocused();
  await page.keyboard.type("teach me fractions");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/chat\//);

  let last = "";
  for (let steps = 0; steps < 40; steps += 1) {
    const waits = await before(page, last);
    if (waits === "nothing") break;
    last = await legend(page);
    if (waits === "plan") {
      await expect(plan(page)).toBeFocused();
      await page.keyboard.press("Tab");
      await expect(button(plan(page), "Accept plan")).toBeFocused();
      await page.keyboard.press("Enter");
      await expect(page.locator("main")).toHaveAttribute("data-phase", "teach");
      continue;
    }
    await expect(question(page).locator("input").first(), `focus on "${last}"`).toBeFocused();
    await type(page, fractions.all.find((quiz) => quiz.question === last));
  }
  await expect(log(page)).toContainText("You have worked through the whole of it.");
  await expect(progress(page).locator(".done")).toHaveCount(8);
  const { messages } = await chatView(server, chatOf(page));
  const results = messages.filter(({ message }) => message.role === "toolResult" && message.toolName === "quiz");
  expect(results.map(({ message }) => (message.details as { verdict: string }).verdict)).not.toContain("wrong");
});

test("a learner who knows nothing of Rust gets to the end of its lesson", async ({ page }) => {
  await begin(page, "teach me Rust ownership");
  let last = "";
  for (let steps = 0; steps < 60; steps += 1) {
    const waits = await before(page, last);
    if (waits === "nothing") break;
    last = await legend(page);
    if (waits === "plan") {
      await button(page, "Accept plan").click();
      await expect(page.locator("main")).toHaveAttribute("data-phase", "teach");
    } else {
      await button(question(page), "I don't know").click();
    }
  }
  await settled(page);
  await expect(progress(page).locator("li:not(.done)")).toHaveCount(0);
  await expect(log(page).getByRole("heading", { name: "Summary" })).toBeVisible();
});

async function focused(page: Page, selector: string): Promise<boolean> {
  return page.evaluate((wanted) => document.activeElement?.matches(wanted) ?? false, selector);
}
