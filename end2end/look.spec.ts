// How the pages look: accessible in both themes, whole on a phone, readable without JavaScript; with pictures to look at.

import { mkdirSync } from "node:fs";
import { join } from "node:path";

import type { Page } from "@playwright/test";

import { expectAccessible } from "./support/axe";
import {
  asked, begin, button, choose, FIRST_QUESTION, fractions, log, open, plan, question, settled, skipToPlan,
} from "./support/lesson";
import { call, expect, modelTest, text } from "./support/model";
import { test } from "./support/server";

const PICTURES = join(import.meta.dirname, "../target/end2end/pictures");
const WIDTHS = [360, 768, 1440];
const THEMES = ["light", "dark"] as const;

test.setTimeout(120_000);

/** Looks at the page in both themes and at every width, and keeps a picture of each. */
async function look(page: Page, name: string): Promise<void> {
  mkdirSync(PICTURES, { recursive: true });
  for (const colorScheme of THEMES) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: width < 500 ? 740 : 900 });
      await page.screenshot({ path: join(PICTURES, `${name}-${width}-${colorScheme}.png`) });
      await expectNoSideways(page);
    }
    await expectAccessible(page);
  }
}

/** Nothing makes the page wider than its window. */
async function expectNoSideways(page: Page): Promise<void> {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(over, `pixels beyond the window at ${page.viewportSize()?.width}`).toBeLessThanOrEqual(0);
}

test("the home page, empty and with chats", async ({ page }) => {
  await open(page, "/");
  await look(page, "home");
  await begin(page);
  await asked(page, FIRST_QUESTION);
  await open(page, "/");
  await expect(page.getByRole("link", { name: /teach me fractions/ })).toHaveCount(1);
  await look(page, "home-chats");
});

test("a lesson with a question, a plan and answered cards", async ({ page }) => {
  await begin(page);
  await asked(page, FIRST_QUESTION);
  await look(page, "question");
  await skipToPlan(page);
  await look(page, "plan");
  await button(plan(page), "Ask for changes").click();
  await look(page, "plan-changes");
  await button(plan(page), "Cancel").click();
  await button(plan(page), "Accept plan").click();
  const pizza = fractions.all[fractions.probe.length];
  await asked(page, pizza.question);
  await button(question(page), "Show a hint").click();
  await look(page, "hint");
  await choose(page, "3/8");
  await asked(page, fractions.all[fractions.probe.length + 1].question);
  await look(page, "answered");
  if (process.env.UPDATE_SCREENSHOT) {
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize({ width: 1280, height: 860 });
    await page.screenshot({ path: join(import.meta.dirname, "../docs/lesson.png") });
  }
});

test("a page that is not there", async ({ browser, server }) => {
  // Without the page that watches complaints: the browser logs the 404.
  const context = await browser.newContext({ baseURL: server.url });
  const page = await context.newPage();
  await page.goto("/chat/nothing");
  await look(page, "not-found");
  await context.close();
});

const RICH = `## What a *move* is

A value has **one** owner; [the book](https://doc.rust-lang.org/book/) says more. Use \`let\`:

\`\`\`rust
fn main() { let first = String::from("a rather long line of code that does not fit on the screen of a phone, nor a tablet"); }
\`\`\`

| Kind | Copies | What happens to the value that stood there before, in words |
|---|:-:|---|
| \`i32\` | yes | it stays, and both can be used |
| \`String\` | no | it is gone, and the compiler says so |

1. First, $a^2 + b^2 = c^2$.
2. Second:
   - a thing
   - another

> A quotation.

$$\\sum_{i=1}^{n} i = \\frac{n(n+1)}{2}$$

A-word-without-any-place-to-break-it-${"x".repeat(90)}
`;

modelTest("code, tables, formulas and a failure", async ({ model, page }) => {
  model.queue(text(RICH));
  await begin(page, "teach me moves");
  await expect(log(page)).toContainText("A quotation.");
  await settled(page);
  await look(page, "rich");
  await page.evaluate(() => window.scrollTo(0, 0));
  await page.setViewportSize({ width: 360, height: 740 });
  await page.screenshot({ path: join(PICTURES, "rich-top-360.png"), fullPage: true });
  const ask = { question: "Which of these move?", kind: "multi", options: ["`i32`", "`String`"], correct: ["`String`"], concept: "move" };
  model.queue(call("quiz", ask));
  await page.getByRole("textbox", { name: "Message" }).fill("ask me");
  await button(page, "Send").click();
  await asked(page, ask.question);
  await look(page, "multi");
});

test("zoomed to 200 %, what stays in sight leaves room to read", async ({ page }) => {
  await begin(page);
  await asked(page, FIRST_QUESTION);
  // A window of half the size is what a browser zoomed to 200 % lays out.
  await page.setViewportSize({ width: 640, height: 400 });
  await expectNoSideways(page);
  const hands = await page.locator(".hands").boundingBox();
  expect(hands?.height).toBeLessThan(130);
  await page.screenshot({ path: join(PICTURES, "zoomed.png") });
  await page.evaluate(() => window.scrollTo(0, document.documentElement.scrollHeight));
  await expect(button(question(page), "Answer")).toBeInViewport();
  const asks = await question(page).boundingBox();
  const below = await page.locator(".hands").boundingBox();
  expect((asks?.y ?? 0) + (asks?.height ?? 0)).toBeLessThanOrEqual(below?.y ?? 0);
});

test("motion is reduced for those who ask for it", async ({ page }) => {
  await page.emulateMedia({ reducedMotion: "reduce" });
  await begin(page);
  const moving = () => page.evaluate(() => document.getAnimations().length);
  await expect(page.locator("main")).toHaveAttribute("data-status", /streaming|ready/);
  expect(await moving()).toBe(0);
  await asked(page, FIRST_QUESTION);
  expect(await moving()).toBe(0);
});

test("without JavaScript the pages can be read", async ({ browser, page, server }) => {
  await begin(page);
  await asked(page, FIRST_QUESTION);
  const plain = await browser.newPage({ baseURL: server.url, javaScriptEnabled: false, viewport: { width: 360, height: 740 } });
  await plain.goto("/");
  await expect(plain.getByRole("heading", { name: "What do you want to learn?" })).toBeVisible();
  await plain.getByRole("link", { name: /teach me fractions/ }).click();
  await expect(log(plain)).toContainText("We will go through fractions from the ground up");
  await expect(question(plain).locator("legend")).toHaveText(FIRST_QUESTION);
  await plain.screenshot({ path: join(PICTURES, "without-javascript.png"), fullPage: true });
  await plain.close();
});
