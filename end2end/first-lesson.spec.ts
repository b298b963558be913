// A first lesson, by mouse: the probe in all its kinds of answers, the plan, and the first block up to a right answer.

import {
  answering, asked, begin, button, choose, FIRST_QUESTION, fractions, log, plan, progress, question, settled, usage,
} from "./support/lesson";
import { expect, test } from "./support/server";

const [, p2, p3, p4, p5, p6] = fractions.probe;
const [pizza, milk] = fractions.all.slice(fractions.probe.length);

test("a learner is probed, accepts a plan and learns from a wrong answer", async ({ page }) => {
  await begin(page);
  await expect(log(page)).toContainText("teach me fractions");
  await expect(log(page)).toContainText("I am a scripted teacher");

  await asked(page, FIRST_QUESTION);
  await question(page).getByRole("textbox", { name: "In your own words" }).fill("to follow old recipes");
  await button(question(page), "Answer").click();
  await expect(log(page)).toContainText("You answered to follow old recipes.");

  await asked(page, fractions.probe[0].question);
  await choose(page, "9/4");
  // The probe says nothing of right and wrong.
  await expect(log(page)).toContainText("You answered 9/4.");
  await expect(log(page)).not.toContainText("Not quite.");
  await asked(page, p2.question);
  await button(question(page), "I don't know").click();
  await expect(log(page)).toContainText("You don't know this yet.");
  await asked(page, p3.question);
  await button(question(page), "Skip").click();
  await expect(log(page)).toContainText("Skipped.");
  for (const quiz of [p4, p5, p6]) {
    await asked(page, quiz.question);
    await choose(page, quiz.correct[0]);
  }

  const assessment = page.getByRole("region", { name: "Assessment" });
  await expect(assessment).toContainText("dividing fractions");
  await expect(assessment).toContainText("equivalent fractions");

  await expect(plan(page).getByRole("listitem")).toHaveCount(6);
  await settled(page);
  await expect(progress(page).getByRole("listitem")).toHaveText(["Probe (done)", "Plan (now)"]);
  await expect(page.locator("main")).toHaveAttribute("data-phase", "plan");
  await button(plan(page), "Accept plan").click();

  await asked(page, pizza.question);
  await expect(page.locator("main")).toHaveAttribute("data-phase", "teach");
  await expect(plan(page)).toContainText("Accepted");
  await expect(progress(page).getByRole("listitem").nth(2)).toHaveText("Parts of a whole (now)");
  await button(question(page), "Show a hint").click();
  await expect(question(page).getByRole("note")).toContainText("Count the slices");
  await expect(question(page).getByRole("radio").first()).toBeFocused();
  await page.reload();
  await answering(page);
  await expect(question(page).getByRole("note")).toContainText("Count the slices");
  await expect(button(question(page), "Show a hint")).toHaveCount(0);
  await choose(page, "3/8");
  await expect(log(page)).toContainText("Not quite. You answered 3/8. Right is 5/8.");
  await expect(log(page)).toContainText("But 3 counts the slices that were eaten");

  await asked(page, milk.question);
  await question(page).getByRole("textbox", { name: "Your answer" }).fill(milk.correct[0]);
  await button(question(page), "Answer").click();
  await expect(log(page)).toContainText("Correct. You answered 8/3.");
  await expect(log(page)).toContainText("6 thirds and 2 thirds are 8 thirds. One more point");
});

test("the usage of a lesson grows with it", async ({ page }) => {
  await begin(page);
  await asked(page, FIRST_QUESTION);
  const tokens = async () => Number((await usage(page).getByRole("definition").first().innerText()).replace(/,/g, ""));
  const before = await tokens();
  expect(before).toBeGreaterThan(0);
  await button(question(page), "Skip").click();
  await asked(page, fractions.probe[0].question);
  expect(await tokens()).toBeGreaterThan(before);
});
