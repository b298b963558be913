// A server or a connection that goes away in mid-stream and comes back: the page says so, waits, and goes on by itself to the
// same end, without a word doubled or lost.

import type { Page } from "@playwright/test";

import {
  asked, begin, button, chatOf, chatView, FIRST_QUESTION, log, message, open, settled, shownText, status,
} from "./support/lesson";
import {
  delta, deltas, finish, type Gate, gate, type Part, type Reply, type ScriptedModel, stream, text, toolCall,
} from "./support/model";
import { expect, proxiedTest } from "./support/proxy";
import { type Server, test as serverTest } from "./support/server";

// The browser logs every request that meets no server.
const expectedComplaints = [/net::ERR_/];

serverTest.describe("a server that goes down", () => {
  serverTest.use({ serverEnv: { LEARNHARNESS_LESSON_PACE_MS: "60" }, expectedComplaints });

  for (const signal of ["SIGKILL", "SIGTERM"] as const) {
    serverTest(`(${signal}) is waited for, and the lesson goes on`, async ({ context, page, server }) => {
      await page.setViewportSize({ width: 900, height: 420 });
      await begin(page);
      await expect(log(page)).toContainText("follow a written");
      await message(page).fill("half a thought");
      await page.mouse.move(400, 100);
      await page.mouse.wheel(0, -4000);
      const place = () => page.evaluate(() => [window.scrollY, document.activeElement?.getAttribute("aria-label")]);
      const before = await place();
      const composer = await message(page).boundingBox();
      await server.stop(signal);
      await expect(status(page)).toHaveText("Reconnecting…");
      await expect(status(page)).toHaveRole("status");
      await expect(status(page)).not.toHaveClass(/busy/);
      await expect(log(page)).toContainText("follow a written");
      await expect(message(page)).toHaveValue("half a thought");
      expect(await place()).toEqual(before);
      expect(await message(page).boundingBox()).toEqual(composer);
      await server.start();
      await asked(page, FIRST_QUESTION);
      await expect(status(page)).toHaveText("A question waits for you.");
      await expect(message(page)).toHaveValue("half a thought");
      await expect(message(page)).toBeFocused();
      const fresh = await context.newPage();
      await open(fresh, page.url());
      await asked(fresh, FIRST_QUESTION);
      expect(await shownText(page)).toBe(await shownText(fresh));
    });
  }

  serverTest("takes an answer that met none as soon as it is there", async ({ page, server }) => {
    await begin(page);
    await asked(page, FIRST_QUESTION);
    await server.stop("SIGKILL");
    await page.getByRole("radio").first().check();
    await button(page, "Answer").click();
    await expect(log(page)).toContainText("You answered School or an exam.");
    await expect(status(page)).toHaveText("Reconnecting…");
    await server.start();
    await asked(page, /A cake is cut/);
    await expect(log(page)).toContainText("You answered School or an exam.");
    await oneOfEach(server, page, { user: 1, toolResult: 1 });
  });
});

/** Holds the number of messages of a role in the record. */
async function oneOfEach(server: Server, page: Page, counts: Record<string, number>): Promise<void> {
  const { messages } = await chatView(server, chatOf(page));
  for (const [role, count] of Object.entries(counts)) {
    expect(messages.filter(({ message }) => message.role === role), role).toHaveLength(count);
  }
}

const THOUGHT = "The learner may mix up the two.";
const WORDS = "The tide comes in twice a day.";
const REST = "The moon has a hand in it.";

/** Thinking, text, a call that fails, its result, and text: the first reply waits at a gate. */
function turn(held: Gate): Reply[] {
  const broken = { question: "Which?", kind: "single", options: ["a", "b"], correct: ["c"], concept: "tides" };
  const thought: Part[] = THOUGHT.split(/(?<= )/).map((piece) => delta({ reasoning_content: piece }));
  const parts: Part[] = [held, ...thought, ...deltas(WORDS), ...toolCall(0, "quiz", broken, "call_quiz"), finish("tool_calls")];
  return [stream(parts), text(REST)];
}

/** A chat whose page streams, with the first reply held. */
async function streaming(model: ScriptedModel, page: Page, opened: () => number): Promise<Gate> {
  const held = gate();
  model.queue(...turn(held));
  await begin(page, "teach me tides");
  await held.reached();
  await expect.poll(opened).toBeGreaterThan(0);
  return held;
}

proxiedTest.describe("a connection that breaks", () => {
  proxiedTest.use({ expectedComplaints });
  proxiedTest.setTimeout(240_000);

  proxiedTest("after any event leaves the page of one that held", async ({ model, page, network, server }) => {
    const shown: string[] = [];
    let cut = 0;
    await open(page, "/");
    for (; cut < 60; cut += 1) {
      const { cuts, opened } = network;
      network.cutAfter(cut);
      const held = gate();
      model.queue(...turn(held));
      // The page stays the same document throughout: loading it anew for each cut would only take longer.
      await message(page).fill("teach me tides");
      await button(page, "Start").click();
      await held.reached();
      await expect.poll(() => network.opened - opened).toBeGreaterThan(0);
      held.open();
      await expect(log(page)).toContainText(REST);
      await settled(page);
      shown.push(await shownText(page));
      await oneOfEach(server, page, { user: 1, assistant: 2, toolResult: 1 });
      // The stream has held to its end: there is nothing more to cut.
      if (network.cuts === cuts) break;
      await page.getByRole("link", { name: "learnharness", exact: true }).click();
      await expect(button(page, "Start")).toBeVisible();
    }
    const whole = shown.at(-1);
    shown.forEach((text, events) => expect(text, `cut after ${events} events`).toBe(whole));
    expect(cut).toBeGreaterThan(12);
    expect(cut).toBeLessThan(60);
  });

  proxiedTest("is waited for; what was said meanwhile is all there, once", async ({ model, page, network, server }) => {
    const held = await streaming(model, page, () => network.opened);
    network.goDown();
    await expect(status(page)).toHaveText("Reconnecting…");
    held.open();
    await expect.poll(async () => (await chatView(server, chatOf(page))).running).toBe(false);
    network.comeUp();
    await expect(log(page)).toContainText(REST);
    await settled(page);
    await expect(log(page).getByText(WORDS)).toHaveCount(1);
    await expect(status(page)).toHaveText("");
  });

  proxiedTest("is tried at once when the browser has a network again", async ({ model, page, network }) => {
    const held = await streaming(model, page, () => network.opened);
    // No timer rings any more: what comes back now comes by the event.
    await page.clock.install();
    await page.reload();
    await expect.poll(() => network.open).toBe(1);
    network.goDown();
    await expect(status(page)).toHaveText("Reconnecting…");
    await page.clock.pauseAt(Date.now() + 60 * 60 * 1000);
    await expect(status(page)).toHaveText("Reconnecting…");
    network.comeUp();
    await page.evaluate(() => window.dispatchEvent(new Event("online")));
    await expect(status(page)).toHaveText("Your teacher is writing…");
    await page.clock.resume();
    held.open();
    await expect(log(page)).toContainText(REST);
  });

  proxiedTest("without a word is noticed, as after a sleep of the machine", async ({ model, page, network }) => {
    await page.clock.install();
    const held = await streaming(model, page, () => network.opened);
    network.fallSilent();
    held.open();
    await page.clock.fastForward(60_000);
    await expect(log(page)).toContainText(REST);
    await settled(page);
    await expect.poll(() => network.open).toBe(0);
  });

  proxiedTest("after the server took a message does not make two of it", async ({ model, page, network, server }) => {
    model.queue(text("Tides, then."), text("Twice a day."));
    await begin(page, "teach me tides");
    await settled(page);
    network.loseReplies("/api/chat");
    await message(page).fill("how often?");
    await button(page, "Send").click();
    await model.request(1);
    network.keepReplies();
    await expect(log(page)).toContainText("Twice a day.");
    await settled(page);
    await oneOfEach(server, page, { user: 2, assistant: 2 });
    await expect(log(page).getByText("how often?")).toHaveCount(1);
    await expect(message(page)).toHaveValue("");
  });

  proxiedTest("after the server took the first words does not begin two lessons", async ({ model, page, network, server }) => {
    model.queue(text("Tides, then."));
    await open(page, "/");
    await message(page).fill("teach me tides");
    network.loseReplies("/api/chat");
    await button(page, "Start").click();
    await expect(page.getByRole("alert")).toContainText("cannot be reached");
    network.keepReplies();
    await button(page, "Start").click();
    await expect(log(page)).toContainText("Tides, then.");
    expect(await (await fetch(`${server.url}/api/chats`)).json()).toHaveLength(1);
    await oneOfEach(server, page, { user: 1, assistant: 1 });
  });

  proxiedTest("by a reload in mid-turn changes nothing of the turn before", async ({ model, page, network }) => {
    model.queue(text("First of all: water."));
    await begin(page, "teach me tides");
    await settled(page);
    const held = gate();
    const opened = network.opened;
    model.queue(stream([...deltas("One two three four five "), held, ...deltas("six."), finish("stop")]));
    await message(page).fill("go on");
    await button(page, "Send").click();
    await held.reached();
    await expect(log(page)).toContainText("four five");
    await page.reload();
    await expect(log(page)).toContainText("four five");
    held.open();
    await expect(log(page)).toContainText("four five six.");
    await settled(page);
    await expect(log(page).getByText("First of all: water.")).toHaveCount(1);
    await expect(log(page).getByRole("article", { name: "Teacher" })).toHaveCount(2);
    expect(network.opened - opened).toBe(2);
  });
});
