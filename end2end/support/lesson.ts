// A lesson as a learner sees and uses it: the page's parts by their accessible names, and what one does with them.

import { readFileSync } from "node:fs";

import { expect, type Locator, type Page } from "@playwright/test";

import type { Server } from "./server";

/** The first question of the lesson on fractions. */
export const FIRST_QUESTION = "What do you want to use fractions for?";

export const log = (page: Page): Locator => page.getByRole("log", { name: "Lesson" });
export const question = (page: Page): Locator => page.getByRole("form", { name: "Question" });
export const plan = (page: Page): Locator => page.getByRole("region", { name: "Plan" });
export const progress = (page: Page): Locator => page.getByRole("list", { name: "Progress" });
export const usage = (page: Page): Locator => page.getByRole("region", { name: "Usage" });
export const message = (page: Page): Locator => page.getByRole("textbox", { name: "Message" });
export const status = (page: Page): Locator => page.locator(".dock p.status");

/** A button by its whole name. */
export function button(within: Page | Locator, name: string): Locator {
  return within.getByRole("button", { name, exact: true });
}

/** Opens an address and waits until the page answers. */
export async function open(page: Page, address: string): Promise<void> {
  await page.goto(address);
  await answering(page);
}

/** Waits until the browser side has taken the page over. */
export async function answering(page: Page): Promise<void> {
  await expect(page.locator("html")).toHaveAttribute("data-hydrated", "true");
}

/** Begins a lesson from the home page; returns its chat's id. */
export async function begin(page: Page, words = "teach me fractions"): Promise<string> {
  await open(page, "/");
  await message(page).fill(words);
  await button(page, "Start").click();
  await page.waitForURL(/\/chat\//);
  return chatOf(page);
}

/** The id of the chat on the page. */
export function chatOf(page: Page): string {
  return new URL(page.url()).pathname.replace("/chat/", "");
}

/** Waits until the teacher has said all that it says for now. */
export async function settled(page: Page): Promise<void> {
  await expect(page.locator("main")).toHaveAttribute("data-status", "ready", { timeout: 30_000 });
}

/** Waits for the question with these words. */
export async function asked(page: Page, words: string | RegExp): Promise<Locator> {
  const form = question(page);
  await expect(form.locator("legend")).toHaveText(words, { timeout: 30_000 });
  await settled(page);
  return form;
}

/** Answers the question on the page with one of its options. */
export async function choose(page: Page, option: string): Promise<void> {
  await question(page).getByRole("radio", { name: option, exact: true }).check();
  await button(question(page), "Answer").click();
}

/** Goes through the probe of the lesson on fractions without an answer, up to the plan. */
export async function skipToPlan(page: Page): Promise<void> {
  for (const words of [FIRST_QUESTION, ...fractions.probe.map((quiz) => quiz.question)]) {
    await asked(page, words);
    await button(question(page), "I don't know").click();
  }
  await expect(button(plan(page), "Accept plan")).toBeEnabled({ timeout: 30_000 });
  await settled(page);
}

/** The lesson's text as it stands on the page. */
export async function shownText(page: Page): Promise<string> {
  return log(page).innerText();
}

export interface Quiz {
  question: string;
  options: string[];
  correct: string[];
}

/** The quizzes of the built-in lesson on fractions, as its author wrote them. */
export const fractions: { probe: Quiz[]; all: Quiz[] } = quizzes("fractions");

/** Makes the page believe that it was hidden, or shown again; a browser without a screen shows every page. */
export async function setVisibility(page: Page, state: "hidden" | "visible"): Promise<void> {
  await page.evaluate((visibility) => {
    Object.defineProperty(document, "visibilityState", { value: visibility, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);
}

/** What the server has of a chat. */
export interface ChatView {
  running: boolean;
  pending: { toolCallId: string }[];
  messages: { seq: number; message: Record<string, unknown> & { role: string } }[];
}

export async function chatView(server: Server, chat: string): Promise<ChatView> {
  const response = await fetch(`${server.url}/api/chats/${chat}`);
  expect(response.status).toBe(200);
  return (await response.json()) as ChatView;
}

/** Calls a server function as the page does. */
export async function post(server: Server, path: string, body: unknown): Promise<Response> {
  const headers = { "content-type": "application/json", origin: server.url };
  return fetch(`${server.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
}

function quizzes(pack: string): { probe: Quiz[]; all: Quiz[] } {
  const text = readFileSync(new URL(`../../lessons/${pack}.md`, import.meta.url), "utf8");
  const read = (part: string): Quiz[] =>
    [...part.matchAll(/^```quiz\n(.*?)^```/gms)].map(([, body]) => ({
      question: JSON.parse(field(body, "question") ?? '""'),
      options: JSON.parse(field(body, "options") ?? "[]"),
      correct: JSON.parse(field(body, "correct") ?? "[]"),
    }));
  return { probe: read(text.split(/^# Block/m)[0]), all: read(text) };
}

function field(body: string, name: string): string | undefined {
  return new RegExp(`^${name} = (.*)$`, "m").exec(body)?.[1];
}
