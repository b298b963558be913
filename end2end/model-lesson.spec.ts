// A lesson with a model that is scripted at the wire: every phase with its tools, and every call with its result.

import { asked, begin, button, choose, log, plan, progress, settled } from "./support/lesson";
import {
  call, delta, deltas, expect, finish, type ModelRequest, modelTest as test, stream, text, textThenCalls,
} from "./support/model";

const PROBE = ["quiz", "ask_user_question", "probe_done"];
const TEACH = ["quiz", "ask_user_question", "plan_init", "plan_progress", "judge"];

const tides = {
  question: "What pulls the sea up?",
  kind: "single",
  options: ["The moon", "The wind"],
  correct: ["The moon"],
  concept: "tides",
};
const blocks = [
  { id: "moon", title: "The moon's pull", objective: "Say why the sea rises.", concepts: ["tides"] },
  { id: "sun", title: "The sun's part", objective: "Say when tides are high.", concepts: ["spring tide"] },
];

function toolsOf(request: ModelRequest): string[] {
  return (request.body.tools as { function: { name: string } }[]).map((tool) => tool.function.name);
}

test("a model goes through probe, plan and teaching, and gets every result paired with its call", async ({ model, page }) => {
  model.queue(
    textThenCalls("Hello. First a question.", [{ name: "quiz", args: tides, id: "ask1" }]),
    call("probe_done", { assessment: { known: ["tides"], shaky: [], unknown: ["spring tide"], goal: "tides" } }, "done1"),
    call("plan_init", { title: "Tides", goal: "Explain tides.", blocks }, "plan1"),
    call("plan_progress", { blockId: "moon", status: "started" }, "progress1"),
    stream([
      delta({ reasoning_content: "The learner knows the moon." }),
      ...deltas("The moon pulls the near sea *more* than the earth."),
      finish("stop"),
    ]),
  );
  await begin(page, "teach me tides");
  await asked(page, tides.question);
  await choose(page, "The moon");
  await expect(button(plan(page), "Accept plan")).toBeEnabled();
  await settled(page);
  await button(plan(page), "Accept plan").click();
  await expect(log(page)).toContainText("The moon pulls the near sea more than the earth.");
  await settled(page);
  await expect(log(page).locator("em", { hasText: "more" })).toBeVisible();
  await log(page).getByText("Thought", { exact: true }).click();
  await expect(log(page)).toContainText("The learner knows the moon.");
  await expect(progress(page).getByRole("listitem")).toHaveText([
    "Probe (done)", "Plan (done)", "The moon's pull (now)", "The sun's part",
  ]);

  expect(model.requests.map(toolsOf)).toEqual([PROBE, PROBE, TEACH, TEACH, TEACH]);
  const last = model.requests[4].body.messages;
  const called = last.flatMap((message) => message.tool_calls?.map(({ id }) => id) ?? []);
  const answered = last.filter(({ role }) => role === "tool").map((message) => message.tool_call_id);
  expect(called).toEqual(["ask1", "done1", "plan1", "progress1"]);
  expect(answered).toEqual(called);
  const answer = model.requests[1].body.messages.at(-1);
  expect(answer).toMatchObject({ role: "tool", tool_call_id: "ask1" });
  expect(JSON.stringify(answer?.content)).toContain("The moon");
});

test("a question that cannot be posed goes back to the model, not to the learner", async ({ model, page }) => {
  model.queue(call("quiz", { ...tides, correct: ["The sun"] }, "bad"), call("quiz", tides, "good"));
  await begin(page, "teach me tides");
  await asked(page, tides.question);
  const [, second] = model.requests;
  expect(second.body.messages.at(-1)).toMatchObject({ role: "tool", tool_call_id: "bad" });
  model.queue(text("Well."));
  await button(page, "Skip").click();
  await expect(log(page)).toContainText("Well.");
});
