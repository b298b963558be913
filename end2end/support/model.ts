// A model by script: an OpenAI-style provider on loopback that answers each request with the next reply of its queue,
// keeps the requests, and judges them.
//
//   import { call, expect, modelTest as test, text } from "./support/model";
//   test("…", async ({ model, page }) => {
//     model.queue(call("quiz", { question: "…" }), text("Well done."));
//     …
//     expect(model.requests[1].body.messages.at(-1)).toMatchObject({ role: "tool" });
//   });
//
// A reply can stop in the middle (`gate()`) until the test opens the gate, or break off there (`CUT`).

import { EventEmitter, once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server as Http, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

import { type Env, expect, test as serverTest } from "./server";

/** The model's name at this provider. */
export const MODEL = "scripted";

/** Milliseconds that a test waits for a request or a gate. */
const PATIENCE = 15_000;

/** What a gate holds back waits until the test opens it. */
export interface Gate {
  /** Resolves when a reply has come to the gate. */
  reached(): Promise<void>;
  open(): void;
}

/** In a stream: the connection breaks here. */
export const CUT = Symbol("cut");

/** A chunk (sent as one SSE event), raw text, a gate, or the break. */
export type Part = Record<string, unknown> | string | Gate | typeof CUT;

export interface Reply {
  status: number;
  headers: Record<string, string>;
  /** For a stream its parts, else the whole body. */
  body: Part[] | Record<string, unknown>;
  /** Which requests it answers; without it, the next one. */
  when?: (request: ModelRequest) => boolean;
}

export interface Message {
  role: string;
  content?: unknown;
  tool_calls?: { id: string; type: string; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
}

/** One request as the provider got it. */
export interface ModelRequest {
  path: string;
  headers: IncomingHttpHeaders;
  body: { model?: string; stream?: boolean; messages: Message[]; tools?: unknown[] } & Record<string, unknown>;
  /** Resolves when the connection has ended; true if the caller broke it off before the reply was complete. */
  aborted: Promise<boolean>;
}

/** An answer in words, one delta a word. */
export function text(words: string): Reply {
  return stream([...deltas(words), finish("stop")]);
}

/** A tool call, its arguments in two deltas. Ids are unique in a worker unless one is given. */
export function call(name: string, args: unknown, id = nextId("call")): Reply {
  return stream([...toolCall(0, name, args, id), finish("tool_calls")]);
}

/** An answer in words with tool calls behind it. */
export function textThenCalls(words: string, calls: { name: string; args: unknown; id?: string }[]): Reply {
  const parts = calls.flatMap(({ name, args, id }, index) => toolCall(index, name, args, id ?? nextId("call")));
  return stream([...deltas(words), ...parts, finish("tool_calls")]);
}

/** A stream of any parts; usage and `[DONE]` follow unless it breaks off. */
export function stream(parts: Part[]): Reply {
  const usage = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 };
  const end: Part[] = parts.includes(CUT) ? [] : [chunk({ choices: [], usage }), "data: [DONE]\n\n"];
  return { status: 200, headers: { "content-type": "text/event-stream" }, body: [...parts, ...end] };
}

/** A refusal with the provider's own words. */
export function refusal(status: number, message: string, headers: Record<string, string> = {}): Reply {
  const body = { error: { message, type: "scripted", code: status } };
  return { status, headers: { "content-type": "application/json", ...headers }, body };
}

/** The same reply for requests of one kind only, whatever else is waiting. */
export function when(test: (request: ModelRequest) => boolean, reply: Reply): Reply {
  return { ...reply, when: test };
}

/** Deltas of text, one a word. */
export function deltas(words: string): Part[] {
  return (words.match(/\S+\s*|\s+/g) ?? []).map((content) => delta({ content }));
}

/** The deltas of one tool call. */
export function toolCall(index: number, name: string, args: unknown, id: string): Part[] {
  const json = typeof args === "string" ? args : JSON.stringify(args);
  const half = Math.floor(json.length / 2);
  const piece = (more: Record<string, unknown>) => delta({ tool_calls: [{ index, ...more }] });
  return [
    piece({ id, type: "function", function: { name, arguments: "" } }),
    piece({ function: { arguments: json.slice(0, half) } }),
    piece({ function: { arguments: json.slice(half) } }),
  ];
}

/** A delta of any shape. */
export function delta(fields: Record<string, unknown>): Part {
  return chunk({ choices: [{ index: 0, delta: { role: "assistant", ...fields }, finish_reason: null }] });
}

/** The chunk that says why the answer ends. */
export function finish(reason: string): Part {
  return chunk({ choices: [{ index: 0, delta: {}, finish_reason: reason }] });
}

/** A closed gate. */
export function gate(): Gate {
  const reached = deferred();
  const opened = deferred();
  const held: HeldGate = {
    reached: () => within(reached.promise, "no reply came to the gate"),
    open: opened.resolve,
    arrive: reached.resolve,
    opened: opened.promise,
  };
  return held;
}

/** The provider. */
export class ScriptedModel {
  readonly requests: ModelRequest[] = [];
  /** What was wrong with the requests; a test that ends with some fails. */
  readonly problems: string[] = [];
  private readonly replies: Reply[] = [];
  private fallback: Reply | undefined;
  private readonly arrivals = new EventEmitter();

  private readonly port: number;

  private constructor(private readonly http: Http) {
    this.port = (http.address() as AddressInfo).port;
    http.on("request", (request, response) => {
      this.answer(request, response).catch((error: unknown) => {
        this.problems.push(`the script failed: ${error}`);
        response.destroy();
      });
    });
  }

  static async start(): Promise<ScriptedModel> {
    const http = createServer().listen(0, "127.0.0.1");
    await once(http, "listening");
    return new ScriptedModel(http);
  }

  /** Where it is, as `LEARNHARNESS_BASE_URL` wants it. */
  get baseUrl(): string {
    return `http://127.0.0.1:${this.port}/v1`;
  }

  /** The environment that makes a server use it. */
  env(): Env {
    return {
      LEARNHARNESS_MODEL: MODEL,
      LEARNHARNESS_API: "openai-completions",
      LEARNHARNESS_BASE_URL: this.baseUrl,
      LEARNHARNESS_API_KEY: "scripted-key",
    };
  }

  /** Adds replies; requests get them in order. */
  queue(...replies: Reply[]): void {
    this.replies.push(...replies);
  }

  /** The reply to every request that the queue has none for. Without one, such a request is a problem. */
  otherwise(reply: Reply): void {
    this.fallback = reply;
  }

  /** How many replies wait for a request. */
  get waiting(): number {
    return this.replies.length;
  }

  /** The request with this number (the first is 0), as soon as it has come. */
  async request(number: number): Promise<ModelRequest> {
    const come = async (): Promise<ModelRequest> => {
      for (;;) {
        const request = this.requests[number];
        if (request) return request;
        await once(this.arrivals, "request");
      }
    };
    return within(come(), `request ${number} did not come`);
  }

  /** Listens again after a stop, where it did before. */
  async resume(): Promise<void> {
    this.http.listen(this.port, "127.0.0.1");
    await once(this.http, "listening");
  }

  async stop(): Promise<void> {
    this.http.close();
    this.http.closeAllConnections();
    if (this.http.listening) await once(this.http, "close");
  }

  private async answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = incoming.url ?? "/";
    if (incoming.method === "GET" && path.endsWith("/models")) {
      return sendJson(response, 200, { object: "list", data: [{ id: MODEL, object: "model" }] });
    }
    const body = JSON.parse(await read(incoming)) as ModelRequest["body"];
    const closed = once(response, "close").then(() => !response.writableFinished);
    const request: ModelRequest = { path, headers: incoming.headers, body, aborted: closed };
    this.problems.push(...judge(request).map((problem) => `request ${this.requests.length}: ${problem}`));
    this.requests.push(request);
    const reply = this.take(request);
    this.arrivals.emit("request");
    if (!reply) {
      this.problems.push(`request ${this.requests.length - 1}: the script has no reply for it`);
      return sendJson(response, 500, { error: { message: "the script has no reply" } });
    }
    if (!Array.isArray(reply.body)) return sendJson(response, reply.status, reply.body, reply.headers);
    response.writeHead(reply.status, reply.headers);
    response.flushHeaders();
    await play(reply.body, response);
  }

  private take(request: ModelRequest): Reply | undefined {
    const index = this.replies.findIndex((reply) => reply.when?.(request) ?? true);
    return index < 0 ? this.fallback : this.replies.splice(index, 1)[0];
  }
}

/** Like `test`, with a server that asks the scripted model. */
export const modelTest = serverTest.extend<{ model: ScriptedModel }>({
  model: async ({}, use) => {
    const model = await ScriptedModel.start();
    await use(model);
    await model.stop();
    expect(model.problems, "what was wrong with the requests to the model").toEqual([]);
  },
  modelEnv: async ({ model }, use) => use(model.env()),
});

export { expect };

/** What a provider would refuse about a request. */
function judge({ path, headers, body }: ModelRequest): string[] {
  const problems: string[] = [];
  const demand = (holds: boolean, problem: string) => {
    if (!holds) problems.push(problem);
  };
  demand(path.endsWith("/chat/completions"), `it went to ${path}`);
  demand(headers.authorization === "Bearer scripted-key", "it has not the key that was configured");
  demand(body.model === MODEL, `it asks for model ${body.model}`);
  demand(body.stream === true, "it does not ask for a stream");
  demand(body.messages.at(-1)?.role !== "assistant", "it ends with an assistant message");
  const open = new Set<string>();
  for (const message of body.messages) {
    if (message.role === "tool") {
      demand(open.delete(message.tool_call_id ?? ""), `a tool message answers no open call: ${message.tool_call_id}`);
      continue;
    }
    demand(open.size === 0, `calls without a result: ${[...open].join(", ")}`);
    open.clear();
    message.tool_calls?.forEach((toolCall) => open.add(toolCall.id));
  }
  demand(open.size === 0, `calls without a result: ${[...open].join(", ")}`);
  return problems;
}

/** A gate with its inner side. */
interface HeldGate extends Gate {
  arrive(): void;
  readonly opened: Promise<void>;
}

async function play(parts: Part[], response: ServerResponse): Promise<void> {
  const gone = once(response, "close").then(() => "gone" as const);
  for (const part of parts) {
    if (part === CUT) {
      response.destroy();
      return;
    }
    if (isGate(part)) {
      part.arrive();
      if ((await Promise.race([part.opened, gone])) === "gone") return;
    } else {
      response.write(typeof part === "string" ? part : `data: ${JSON.stringify(part)}\n\n`);
    }
  }
  response.end();
}

function isGate(part: Part): part is HeldGate {
  return typeof part === "object" && "arrive" in part;
}

function chunk(fields: Record<string, unknown>): Record<string, unknown> {
  return { id: "chatcmpl-scripted", object: "chat.completion.chunk", created: 1_700_000_000, model: MODEL, ...fields };
}

let ids = 0;
function nextId(prefix: string): string {
  ids += 1;
  return `${prefix}_${ids}`;
}

function sendJson(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

async function read(incoming: IncomingMessage): Promise<string> {
  let text = "";
  for await (const piece of incoming.setEncoding("utf8")) text += piece;
  return text;
}

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}

/** The promise, or an error when it takes too long. */
async function within<T>(promise: Promise<T>, problem: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${problem} within ${PATIENCE / 1000} s`)), PATIENCE);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
