// The scripted model itself: specs trust it, so it is tested first.

import { expect, test } from "@playwright/test";

import { CUT, call, deltas, finish, gate, type Message, refusal, ScriptedModel, stream, text, when } from "./model";

async function withModel(story: (model: ScriptedModel) => Promise<void>): Promise<void> {
  const model = await ScriptedModel.start();
  try {
    await story(model);
  } finally {
    await model.stop();
  }
}

function ask(model: ScriptedModel, messages: Message[], init: RequestInit = {}): Promise<Response> {
  return fetch(`${model.baseUrl}/chat/completions`, {
    method: "POST",
    headers: { authorization: "Bearer scripted-key", "content-type": "application/json" },
    body: JSON.stringify({ model: "scripted", stream: true, messages }),
    ...init,
  });
}

const HELLO: Message[] = [{ role: "user", content: "Hello" }];

/** The text deltas of a stream, put together. */
async function said(response: Response): Promise<string> {
  const events = (await response.text()).split("\n\n").filter((event) => event && event !== "data: [DONE]");
  return events.map((event) => JSON.parse(event.slice("data: ".length)).choices[0]?.delta.content ?? "").join("");
}

test("replies come in the order of the queue, and requests are kept", async () => {
  await withModel(async (model) => {
    model.queue(text("Good morning, you."), call("quiz", { question: "Why?" }, "call_a"));
    expect(await said(await ask(model, HELLO))).toBe("Good morning, you.");
    const second = await (await ask(model, HELLO)).text();
    expect(second).toContain('"name":"quiz"');
    expect(second.trimEnd().endsWith("data: [DONE]")).toBe(true);
    expect(model.requests.map((request) => request.body.messages)).toEqual([HELLO, HELLO]);
    expect(model.problems).toEqual([]);
    expect(model.waiting).toBe(0);
  });
});

test("a refusal has its status, its headers and its words", async () => {
  await withModel(async (model) => {
    model.queue(refusal(429, "Slow down", { "retry-after": "7" }));
    const response = await ask(model, HELLO);
    expect(response.status).toBe(429);
    expect(response.headers.get("retry-after")).toBe("7");
    expect(await response.json()).toMatchObject({ error: { message: "Slow down" } });
  });
});

test("a gate holds the rest back until it is opened", async () => {
  await withModel(async (model) => {
    const held = gate();
    model.queue(stream([...deltas("Before "), held, ...deltas("after"), finish("stop")]));
    const response = await ask(model, HELLO);
    await held.reached();
    held.open();
    expect(await said(response)).toBe("Before after");
    expect(await (await model.request(0)).aborted).toBe(false);
  });
});

test("a caller that goes away at a gate is noticed", async () => {
  await withModel(async (model) => {
    const held = gate();
    const caller = new AbortController();
    model.queue(stream([...deltas("Before "), held]));
    await ask(model, HELLO, { signal: caller.signal });
    await held.reached();
    caller.abort();
    expect(await (await model.request(0)).aborted).toBe(true);
  });
});

test("a cut stream breaks the connection off", async () => {
  await withModel(async (model) => {
    const held = gate();
    model.queue(stream([...deltas("Half a"), held, CUT]));
    const response = await ask(model, HELLO);
    held.open();
    await expect(response.text()).rejects.toThrow();
  });
});

test("a reply for one kind of request leaves the others to the queue", async () => {
  await withModel(async (model) => {
    model.queue(when((request) => request.body.messages.length > 1, text("long")), text("short"));
    expect(await said(await ask(model, HELLO))).toBe("short");
    expect(await said(await ask(model, [{ role: "system", content: "" }, ...HELLO]))).toBe("long");
  });
});

test("a request without a reply is a problem, unless there is one for all others", async () => {
  await withModel(async (model) => {
    expect((await ask(model, HELLO)).status).toBe(500);
    expect(model.problems).toEqual(["request 0: the script has no reply for it"]);
    model.otherwise(text("again"));
    expect(await said(await ask(model, HELLO))).toBe("again");
    expect(await said(await ask(model, HELLO))).toBe("again");
  });
});

test("requests that providers refuse are problems", async () => {
  const calls = [{ id: "a", type: "function", function: { name: "ls", arguments: "{}" } }];
  const stories: [Message[], string][] = [
    [[...HELLO, { role: "assistant", content: "Hi" }], "request 0: it ends with an assistant message"],
    [[{ role: "assistant", tool_calls: calls }, ...HELLO], "request 0: calls without a result: a"],
    [[...HELLO, { role: "tool", tool_call_id: "b" }], "request 0: a tool message answers no open call: b"],
  ];
  for (const [messages, problem] of stories) {
    await withModel(async (model) => {
      model.queue(text("ok"));
      await (await ask(model, messages)).text();
      expect(model.problems).toContain(problem);
    });
  }
});
