// Stop reaches a run from any tab, keeps what was said, and leaves a lesson that can go on.

import {
  asked, begin, button, chatOf, chatView, FIRST_QUESTION, log, message, open, post, question, settled, shownText,
  status,
} from "./support/lesson";
import { expect, test } from "./support/server";

test.describe("while the teacher writes", () => {
  test.use({ serverEnv: { LEARNHARNESS_LESSON_PACE_MS: "60" } });

  test("a second tab stops it, both keep the words so far, and the lesson goes on", async ({ context, page, server }) => {
    await begin(page);
    const other = await context.newPage();
    await open(other, page.url());
    await expect(log(page)).toContainText("follow a written");
    await button(other, "Stop").click();

    for (const each of [page, other]) {
      await settled(each);
      await expect(log(each)).toContainText("You stopped the teacher here.");
      await expect(log(each)).toContainText("follow a written");
      await expect(message(each)).toBeEnabled();
      await expect(button(each, "Stop")).toHaveCount(0);
    }
    expect(await shownText(page)).toBe(await shownText(other));
    const { messages } = await chatView(server, chatOf(page));
    expect(messages.at(-1)?.message).toMatchObject({ role: "assistant", stopReason: "aborted" });

    await button(page, "Retry").click();
    await asked(page, FIRST_QUESTION);
    await asked(other, FIRST_QUESTION);
    await expect(log(page)).not.toContainText("You stopped the teacher here.");
    expect(await shownText(page)).toBe(await shownText(other));
  });
});

test.describe("while the server is away", () => {
  test.use({ serverEnv: { LEARNHARNESS_LESSON_PACE_MS: "200" }, expectedComplaints: [/net::ERR_/] });

  test("a stop waits, says so, and is sent when the server is back", async ({ page, server }) => {
    await begin(page);
    await expect(log(page)).toContainText("follow a written");
    await server.stop("SIGKILL");
    await expect(status(page)).toHaveText("Reconnecting…");
    await button(page, "Stop").click();
    await expect(status(page)).toHaveText("Reconnecting to stop your teacher…");
    await server.start();
    await settled(page);
    await expect(log(page)).toContainText("You stopped the teacher here.");
    await expect(question(page)).toHaveCount(0);
    await expect(page.locator(".dock").getByRole("alert")).toHaveCount(0);
  });
});

test("a stop while a question waits closes it on every page", async ({ page, server }) => {
  const chat = await begin(page);
  await asked(page, FIRST_QUESTION);
  const response = await post(server, "/api/activity/abort", { chatId: chat });
  expect(response.status).toBe(202);
  await expect(question(page)).toHaveCount(0);
  await expect(log(page)).toContainText("Not answered.");
  expect((await post(server, "/api/activity/abort", { chatId: chat })).status).toBe(200);
  await message(page).fill("go on");
  await button(page, "Send").click();
  await asked(page, FIRST_QUESTION);
});
