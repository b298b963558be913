// The back button: a page that the browser kept in its cache goes on from where the lesson is now.

import { begin, chatView, log, settled } from "./support/lesson";
import { deltas, finish, gate, stream } from "./support/model";
import config from "./playwright.config";
import { expect, proxiedTest as test } from "./support/proxy";

// The cache is off in browsers that are driven.
test.use({ launchOptions: { ...config.use?.launchOptions, ignoreDefaultArgs: ["--disable-back-forward-cache"] } });

test("a page that comes out of the browser's cache follows its lesson again", async ({ model, network, page, server }) => {
  const held = gate();
  model.queue(stream([...deltas("The tide comes in "), held, ...deltas("twice a day."), finish("stop")]));
  const chat = await begin(page, "teach me tides");
  await held.reached();
  await expect.poll(() => network.open).toBe(1);
  await page.evaluate(() => {
    window.addEventListener("pageshow", (event) => Object.assign(window, { kept: event.persisted }));
  });
  await page.goto(`/chat/${chat}?again`);
  await expect.poll(() => network.open).toBe(1);
  held.open();
  await expect.poll(async () => (await chatView(server, chat)).running).toBe(false);
  await page.goBack();
  await expect(log(page)).toContainText("twice a day.");
  await settled(page);
  expect(await page.evaluate(() => (window as unknown as { kept?: boolean }).kept)).toBe(true);
});
