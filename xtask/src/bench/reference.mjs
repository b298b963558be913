// Drives the reference packages' agent with one listener a run, and prints what it took as one line of JSON.
// URL RUNS: so many runs at once answer one prompt each. URL turns N: one run takes N turns with a call of a tool each.
import { Agent } from "@earendil-works/pi-agent-core";
import { streamSimple } from "@earendil-works/pi-ai/api/openai-completions";

const [baseUrl, ...load] = process.argv.slice(2);
const model = {
  id: "measured", name: "measured", provider: "custom", api: "openai-completions", baseUrl, reasoning: false, input: ["text"],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 128000, maxTokens: 16384,
};
const look = {
  name: "ls", label: "List", description: "Lists a folder.", parameters: { type: "object", properties: { path: { type: "string" } } },
  execute: async () => ({ content: [{ type: "text", text: "notes.md" }], details: undefined }),
};
const micros = (used) => used.user + used.system;

/** Runs one prompt; returns the CPU time at the end of each turn. */
async function run(turns) {
  const marks = [];
  const agent = new Agent({
    initialState: { systemPrompt: "", model, thinkingLevel: "off", tools: [look], messages: [] },
    streamFn: streamSimple,
    getApiKey: () => "key",
    shouldStopAfterTurn: async () => marks.length >= turns,
  });
  agent.subscribe((event) => {
    if (event.type === "turn_end") marks.push(micros(process.cpuUsage()));
  });
  await agent.prompt("Tell me about it.");
  const answer = agent.state.messages.findLast((message) => message.role === "assistant");
  if (answer === undefined || answer.errorMessage) throw new Error(`no answer: ${JSON.stringify(answer)}`);
  return marks;
}

const said = {};
if (load[0] !== "turns") await run(1);
const [cpu, wall] = [process.cpuUsage(), process.hrtime.bigint()];
if (load[0] === "turns") {
  const before = micros(cpu);
  const marks = await run(Number(load[1]));
  const tenth = Math.max(1, Math.floor(marks.length / 10));
  said.firstTurnMicroseconds = Math.round((marks[tenth - 1] - before) / tenth);
  said.lastTurnMicroseconds = Math.round((marks.at(-1) - marks.at(-tenth - 1)) / tenth);
} else {
  await Promise.all(Array.from({ length: Number(load[0]) }, () => run(1)));
}
said.cpuMicroseconds = micros(process.cpuUsage(cpu));
said.peakBytes = process.resourceUsage().maxRSS * 1024;
said.wallMicroseconds = Math.round(Number(process.hrtime.bigint() - wall) / 1000);
console.log(JSON.stringify(said));
