// A proxy between browser and server that fails as networks do: it cuts streams, keeps them open and says nothing, loses the
// reply to a request that the server took, or is not there at all. It also counts the streams that are open.
//
//   import { expect, proxiedTest as test } from "./support/proxy";
//   test("…", async ({ network, page }) => { network.cutAfter(3); … });

import { once } from "node:events";
import { createServer, type IncomingMessage, request as ask, type Server as Http, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";

import { expect, modelTest } from "./model";
import type { Server } from "./server";

export class Proxy {
  readonly url: string;
  /** Connections of the streams that are open now. */
  private readonly streams = new Set<Socket>();
  /** How many streams were ever opened. */
  opened = 0;
  /** How many streams were cut. */
  cuts = 0;
  /** Events after which the next stream is cut. */
  private cut: number | undefined;
  /** The path of the POSTs whose replies are lost. */
  private lost: string | undefined;
  private isDown = false;
  private isSilent = false;

  private constructor(
    private readonly http: Http,
    private readonly server: Server,
  ) {
    this.url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
    http.on("request", (incoming, response) => this.pass(incoming, response));
  }

  static async before(server: Server): Promise<Proxy> {
    const http = createServer().listen(0, "127.0.0.1");
    await once(http, "listening");
    return new Proxy(http, server);
  }

  get open(): number {
    return this.streams.size;
  }

  /** Cuts the next stream after this many events. */
  cutAfter(events: number): void {
    this.cut = events;
  }

  /** What is posted to `path` reaches the server, and its replies get lost. */
  loseReplies(path: string): void {
    this.lost = path;
  }

  keepReplies(): void {
    this.lost = undefined;
  }

  /** Every connection breaks, and no other comes about. */
  goDown(): void {
    this.isDown = true;
    this.http.closeAllConnections();
  }

  comeUp(): void {
    this.isDown = false;
  }

  /** The streams that are open now stay open and carry nothing more. */
  fallSilent(): void {
    this.isSilent = true;
  }

  async stop(): Promise<void> {
    this.http.close();
    this.http.closeAllConnections();
    if (this.http.listening) await once(this.http, "close");
  }

  private pass(incoming: IncomingMessage, response: ServerResponse): void {
    if (this.isDown) {
      incoming.socket.destroy();
      return;
    }
    const { method, url: path } = incoming;
    // The server answers to its own name only.
    const headers: IncomingMessage["headers"] = { ...incoming.headers, host: new URL(this.server.url).host };
    if (headers.origin) headers.origin = this.server.url;
    const outgoing = ask({ host: "127.0.0.1", port: this.server.port, method, path, headers, agent: false });
    outgoing.on("response", (reply) => this.answer(incoming, reply, response));
    outgoing.on("error", () => incoming.socket.destroy());
    response.on("close", () => outgoing.destroy());
    incoming.pipe(outgoing);
  }

  private answer(incoming: IncomingMessage, reply: IncomingMessage, response: ServerResponse): void {
    reply.on("error", () => incoming.socket.destroy());
    if (incoming.method === "POST" && incoming.url === this.lost) {
      reply.resume().on("end", () => incoming.socket.destroy());
      return;
    }
    response.writeHead(reply.statusCode ?? 500, reply.headers);
    if (reply.headers["content-type"] !== "text/event-stream") {
      reply.pipe(response);
      return;
    }
    this.opened += 1;
    this.streams.add(incoming.socket);
    response.on("close", () => this.streams.delete(incoming.socket));
    this.relay(reply, response, incoming.socket);
  }

  private relay(reply: IncomingMessage, response: ServerResponse, socket: Socket): void {
    let left = this.cut ?? Infinity;
    this.cut = undefined;
    this.isSilent = false;
    response.flushHeaders();
    const cutOff = () => {
      this.cuts += 1;
      socket.destroy();
    };
    if (left === 0) {
      cutOff();
      return;
    }
    let text = "";
    reply.setEncoding("utf8").on("data", (piece: string) => {
      if (this.isSilent) return;
      text += piece;
      for (let end = text.indexOf("\n\n"); end >= 0 && left > 0; end = text.indexOf("\n\n")) {
        const block = text.slice(0, end + 2);
        text = text.slice(end + 2);
        if (!block.startsWith(":")) left -= 1;
        response.write(block, () => left > 0 || cutOff());
      }
    });
    reply.on("end", () => response.end());
  }
}

/** Like `modelTest`, with a proxy that the browser meets instead of the server. */
export const proxiedTest = modelTest.extend<{ network: Proxy }>({
  network: async ({ server }, use) => {
    const proxy = await Proxy.before(server);
    await use(proxy);
    await proxy.stop();
  },
  baseURL: async ({ network }, use) => use(network.url),
});

export { expect };
