// A plan that the learner sends back comes again, changed.

import { answering, begin, button, log, message, plan, progress, settled, skipToPlan } from "./support/lesson";
import { expect, test } from "./support/server";

test("a block that the learner asks to skip is in neither the new plan nor the progress", async ({ page }) => {
  await begin(page);
  await skipToPlan(page);
  await expect(plan(page).getByRole("listitem")).toHaveCount(6);
  await button(plan(page), "Ask for changes").click();
  const changes = plan(page).getByRole("textbox", { name: "What should change?" });
  await expect(changes).toBeFocused();
  await expect(button(plan(page), "Send changes")).toBeDisabled();
  await changes.fill("skip the first block");
  await button(plan(page), "Send changes").click();

  await expect(log(page)).toContainText("You asked for changes to the plan.");
  await expect(log(page)).toContainText("I changed the plan");
  await expect(plan(page)).toHaveCount(1);
  await expect(plan(page).getByRole("listitem")).toHaveCount(5);
  await expect(plan(page)).not.toContainText("Parts of a whole");
  await settled(page);
  await button(plan(page), "Accept plan").click();
  await expect(page.locator("main")).toHaveAttribute("data-phase", "teach");
  await settled(page);
  await expect(progress(page).getByRole("listitem")).toHaveCount(7);
  await expect(progress(page)).not.toContainText("Parts of a whole");
  await expect(progress(page).getByRole("listitem").nth(2)).toContainText("Equal fractions and simplest form (now)");
});

test("changes that were not sent can be thought over, and are not lost", async ({ page }) => {
  await begin(page);
  await skipToPlan(page);
  await button(plan(page), "Ask for changes").click();
  const changes = plan(page).getByRole("textbox", { name: "What should change?" });
  await changes.fill("make it shorter");
  await button(plan(page), "Cancel").click();
  await expect(button(plan(page), "Accept plan")).toBeVisible();
  await message(page).fill("what is a fraction?");
  await button(page, "Send").click();
  await settled(page);
  await page.reload();
  await answering(page);
  await button(plan(page), "Ask for changes").click();
  await expect(changes).toHaveValue("make it shorter");
});
