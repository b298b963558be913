// A provider that fails: the lesson says so in plain words, nothing that was typed is lost, and Retry makes it good.

import type { Page } from "@playwright/test";

import { begin, button, chatOf, chatView, log, message, settled } from "./support/lesson";
import { expect, modelTest as test, type Reply, refusal, text } from "./support/model";
import type { Server } from "./support/server";

test.setTimeout(90_000);

const failure = (page: Page) => log(page).getByRole("alert");

/** Retries, and checks what page and record hold afterwards. */
async function retried(page: Page, server: Server): Promise<void> {
  await button(log(page), "Retry").click();
  await expect(log(page)).toContainText("Now I can hear you.");
  await settled(page);
  await expect(failure(page)).toHaveCount(0);
  await expect(log(page)).toContainText("teach me tides");
  const { messages } = await chatView(server, chatOf(page));
  const failed = messages.filter(({ message }) => message.stopReason === "error");
  expect(failed).toHaveLength(1);
  await page.reload();
  await expect(log(page)).toContainText("Now I can hear you.");
  await expect(failure(page)).toHaveCount(0);
}

const refusals: [string, Reply, RegExp][] = [
  ["fails inside (500)", refusal(500, "the machine is on fire"), /500|fire/],
  ["does not know the key (401)", refusal(401, "no such key"), /key/i],
];

for (const [story, reply, words] of refusals) {
  test(`a provider that ${story} is named, and Retry gives the answer`, async ({ model, page, server }) => {
    // A passing failure is asked again before it is shown.
    model.queue(...(reply.status === 500 ? [reply, reply, reply] : [reply]));
    await begin(page, "teach me tides");
    await expect(failure(page)).toContainText(words);
    await expect(log(page)).toContainText("teach me tides");
    await settled(page);
    await expect(message(page)).toBeEnabled();
    model.queue(text("Now I can hear you."));
    await retried(page, server);
    expect(model.waiting).toBe(0);
  });
}

test("a provider that cannot be reached is named, and Retry gives the answer", async ({ model, page, server }) => {
  await model.stop();
  await begin(page, "teach me tides");
  await expect(failure(page)).toContainText(/reach/i);
  await settled(page);
  await message(page).fill("are you there?");
  await page.reload();
  await expect(message(page)).toHaveValue("are you there?");
  await model.resume();
  model.queue(text("Now I can hear you."));
  await retried(page, server);
  expect(model.requests).toHaveLength(1);
});

test("writing instead of Retry goes on as well", async ({ model, page }) => {
  model.queue(refusal(401, "no such key"));
  await begin(page, "teach me tides");
  await expect(failure(page)).toBeVisible();
  await settled(page);
  model.queue(text("Here I am."));
  await message(page).fill("hello?");
  await button(page, "Send").click();
  await expect(log(page)).toContainText("Here I am.");
  await settled(page);
  await expect(button(log(page), "Retry")).toHaveCount(0);
});
