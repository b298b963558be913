// The fixtures themselves: a spec that passes means something only if these hold.

import type { Page } from "@playwright/test";

import { Complaints, expect, Server, test } from "./server";

test("a page that hydrates has no complaints, and a server starts again on its data", async ({ page, server }) => {
  const hydrated = page.locator("html[data-hydrated]");
  await page.goto("/");
  await expect(hydrated).toBeAttached();
  await server.stop("SIGKILL");
  await server.start();
  await page.reload();
  await expect(hydrated).toBeAttached();
});

test.describe("complaints", () => {
  // They are what these stories are about; the fixture itself has the last one.
  test.use({ expectedComplaints: [/./] });

  const stories: [string, (page: Page) => Promise<unknown>, RegExp][] = [
    ["a warning on the console", (page) => page.evaluate(() => console.warn("beware")), /^console warning: beware/],
    ["an uncaught error", (page) => page.evaluate(() => void setTimeout(() => fail())), /^uncaught: .*fail is not defined/],
    [
      "a request to another host",
      // By going there: the content security policy stops a page's own requests before they are made.
      (page) => page.goto("http://127.0.0.1:9/").catch(() => undefined),
      /^request to another host: http:\/\/127\.0\.0\.1:9\/$/,
    ],
  ];
  for (const [name, cause, complaint] of stories) {
    test(`${name} is noticed`, async ({ context, page, server }) => {
      const complaints = new Complaints(context, server.url);
      await page.goto("/");
      await cause(page);
      await expect.poll(() => complaints.unexpected([])).toContainEqual(expect.stringMatching(complaint));
      expect(complaints.unexpected([/./])).toEqual([]);
    });
  }
});

test("a complaint fails the test that did not expect it", async ({ page }) => {
  test.fail();
  await page.goto("/");
  await page.evaluate(() => console.warn("beware"));
});

test("the caller's environment does not reach the server", async ({ request }) => {
  process.env.LEARNHARNESS_TOKEN = "a token that would shut everyone out";
  const server = await Server.fresh();
  try {
    expect((await request.get(`${server.url}/api/chats`)).status()).toBe(200);
  } finally {
    delete process.env.LEARNHARNESS_TOKEN;
    await server.remove();
  }
});

/** Not there: calling it is the uncaught error. */
declare function fail(): void;
