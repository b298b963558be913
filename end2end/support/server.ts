// A server of its own for every test, on a free port with an empty data folder, and a page that may not complain.
//
//   import { expect, test } from "./support/server";
//   test("…", async ({ page }) => { await page.goto("/"); });
//
// The server has no key and teaches authored lessons, without their pace. `modelTest`
// (support/model.ts) gives it a scripted model instead. `test.use({ serverEnv: { … } })` sets more of its environment.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

import { type BrowserContext, expect, test as base } from "@playwright/test";

/** Milliseconds until a server must answer. */
const PATIENCE = 20_000;

export type Env = Record<string, string>;

/** One server process and its data folder; it can be ended and started again on both. */
export class Server {
  readonly url: string;
  private child: ChildProcess | undefined;
  private output = "";

  private constructor(
    readonly port: number,
    readonly data: string,
    private readonly env: Env,
  ) {
    this.url = `http://127.0.0.1:${port}`;
  }

  /** A running server with an empty data folder. */
  static async fresh(env: Env = {}): Promise<Server> {
    const data = await mkdtemp(join(tmpdir(), "learnharness-"));
    const server = new Server(await freePort(), data, env);
    await server.start();
    return server;
  }

  /** Starts the process and waits until `/health` answers. */
  async start(): Promise<void> {
    const binary = process.env.LEARNHARNESS_BIN;
    if (!binary) throw new Error("LEARNHARNESS_BIN names no server; run `cargo xtask test`");
    const child = spawn(binary, [], {
      cwd: this.data,
      env: {
        ...inherited(),
        LEARNHARNESS_SITE: process.env.LEARNHARNESS_SITE ?? "target/site",
        LEARNHARNESS_ADDR: `127.0.0.1:${this.port}`,
        LEARNHARNESS_DATA: this.data,
        LEARNHARNESS_LESSON_PACE_MS: "0",
        ...this.env,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.child = child;
    child.on("error", (error) => (this.output += `${error}\n`));
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => (this.output += text));
    }
    await this.ready(child);
  }

  /** Ends the process: `SIGTERM` as a person would, `SIGKILL` as a crash does. The data stay. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    const child = this.child;
    this.child = undefined;
    if (!child || ended(child)) return;
    const exit = once(child, "exit");
    child.kill(signal);
    // A server that does not end when asked is ended, and the test that saw it fails.
    const late = new AbortController();
    const limit = pause(10_000, "late" as const, { signal: late.signal }).catch(() => "ended" as const);
    const outcome = await Promise.race([exit.then(() => "ended" as const), limit]);
    late.abort();
    if (outcome === "late") {
      child.kill("SIGKILL");
      await exit;
      throw new Error(`the server did not end within 10 s of ${signal}\n${this.output}`);
    }
  }

  /** Ends the process and removes its data. */
  async remove(): Promise<void> {
    try {
      await this.stop();
    } finally {
      await rm(this.data, { recursive: true, force: true });
    }
  }

  /** What the server has written to its standard output and error. */
  log(): string {
    return this.output;
  }

  private async ready(child: ChildProcess): Promise<void> {
    const limit = Date.now() + PATIENCE;
    while (!ended(child)) {
      const healthy = await fetch(`${this.url}/health`).then((response) => response.ok, () => false);
      if (healthy) return;
      if (Date.now() > limit) {
        await this.stop("SIGKILL");
        throw new Error(`the server does not answer on ${this.url}/health\n${this.output}`);
      }
      await pause(20);
    }
    throw new Error(`the server ended before it answered\n${this.output}`);
  }
}

/** What the browser complained about while a context was open. */
export class Complaints {
  private readonly found: string[] = [];

  constructor(context: BrowserContext, origin: string) {
    context.on("console", (message) => {
      if (message.type() === "warning" || message.type() === "error") {
        this.found.push(`console ${message.type()}: ${message.text()} (${message.location().url})`);
      }
    });
    context.on("weberror", (error) => this.found.push(`uncaught: ${error.error().stack ?? error.error().message}`));
    context.on("request", (request) => this.visit(request.url(), origin));
    context.on("page", (page) => page.on("websocket", (socket) => this.visit(socket.url(), origin)));
  }

  /** All of it but what the test expected. */
  unexpected(expected: RegExp[]): string[] {
    return this.found.filter((complaint) => !expected.some((pattern) => pattern.test(complaint)));
  }

  private visit(url: string, origin: string): void {
    if (/^(data|blob|about):/.test(url) || new URL(url).host === new URL(origin).host) return;
    this.found.push(`request to another host: ${url}`);
  }
}

interface Fixtures {
  /** The environment that chooses the model; none chooses the lesson teacher. */
  modelEnv: Env;
  /** More of the server's environment. */
  serverEnv: Env;
  /** Complaints that belong to the story, such as a refused request that the browser logs. */
  expectedComplaints: RegExp[];
  server: Server;
}

export const test = base.extend<Fixtures>({
  modelEnv: {},
  serverEnv: [{}, { option: true }],
  expectedComplaints: [[], { option: true }],

  server: async ({ modelEnv, serverEnv }, use, testInfo) => {
    const server = await Server.fresh({ ...modelEnv, ...serverEnv });
    try {
      await use(server);
    } finally {
      if (testInfo.status !== testInfo.expectedStatus) {
        await testInfo.attach("server log", { body: server.log(), contentType: "text/plain" });
      }
      await server.remove();
    }
  },

  baseURL: async ({ server }, use) => use(server.url),

  context: async ({ context, server, baseURL, expectedComplaints }, use) => {
    const complaints = new Complaints(context, baseURL ?? server.url);
    await use(context);
    expect(complaints.unexpected(expectedComplaints), "the browser's complaints").toEqual([]);
  },
});

export { expect };

/** This process's environment without what would make the server another one than the test means. */
function inherited(): Env {
  const strange = /^(LEARNHARNESS_.*|DATABASE_URL|.*_API_KEY)$/;
  const entries = Object.entries(process.env).filter(([name, value]) => value !== undefined && !strange.test(name));
  return Object.fromEntries(entries) as Env;
}

function ended(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null || child.pid === undefined;
}

/** A port that nobody listens on, below the range that outgoing connections take theirs from. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 20_000);
    const probe = createServer().listen(port, "127.0.0.1");
    const free = await once(probe, "listening").then(() => true, () => false);
    if (!free) continue;
    probe.close();
    await once(probe, "close");
    return port;
  }
}
