// A server that dies in mid-stream and comes back: the page says so, waits, and goes on by itself to the same end.

import { asked, begin, FIRST_QUESTION, log, message, open, shownText, status } from "./support/lesson";
import { expect, test } from "./support/server";

test.use({
  serverEnv: { LEARNHARNESS_LESSON_PACE_MS: "60" },
  // The browser logs every request that meets no server.
  expectedComplaints: [/net::ERR_/],
});

test("a lesson goes on by itself after a crash of the server", async ({ context, page, server }) => {
  await begin(page);
  await expect(log(page)).toContainText("follow a written");
  await message(page).fill("half a thought");
  await server.stop("SIGKILL");
  await expect(status(page)).toHaveText("Connecting again…");
  await expect(log(page)).toContainText("follow a written");
  await expect(message(page)).toHaveValue("half a thought");
  await server.start();
  await asked(page, FIRST_QUESTION);
  await expect(status(page)).toHaveText("A question waits for you.");
  await expect(message(page)).toHaveValue("half a thought");
  const fresh = await context.newPage();
  await open(fresh, page.url());
  await asked(fresh, FIRST_QUESTION);
  expect(await shownText(page)).toBe(await shownText(fresh));
});

test("an answer that meets no server is taken as soon as there is one", async ({ page, server }) => {
  await begin(page);
  await asked(page, FIRST_QUESTION);
  await server.stop("SIGKILL");
  await page.getByRole("radio").first().check();
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await expect(status(page)).toHaveText(/Sending…|Connecting again…/);
  await server.start();
  await asked(page, /A cake is cut/);
  await expect(log(page)).toContainText("You answered School or an exam.");
});
