// Drives the reference packages' agent: so many runs at once against a provider, each with one listener; prints what it took.
import { Agent } from "@earendil-works/pi-agent-core";
import { streamSimple } from "@earendil-works/pi-ai/api/openai-completions";

const [baseUrl, runs] = process.argv.slice(2);
const model = {
  id: "measured", name: "measured", provider: "custom", api: "openai-completions", baseUrl, reasoning: false, input: ["text"],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 128000, maxTokens: 16384,
};

async function run() {
  let seen = 0;
  const agent = new Agent({
    initialState: { systemPrompt: "", model, thinkingLevel: "off", tools: [], messages: [] },
    streamFn: streamSimple,
    getApiKey: () => "key",
  });
  agent.subscribe(() => { seen += 1; });
  await agent.prompt("Tell me about it.");
  const last = agent.state.messages.at(-1);
  if (last.role !== "assistant" || last.stopReason !== "stop" || seen === 0) throw new Error(`no answer: ${JSON.stringify(last)}`);
}

await run();
const [cpu, wall] = [process.cpuUsage(), process.hrtime.bigint()];
await Promise.all(Array.from({ length: Number(runs) }, run));
const used = process.cpuUsage(cpu);
console.log(JSON.stringify({
  cpuMicroseconds: used.user + used.system,
  peakBytes: process.resourceUsage().maxRSS * 1024,
  wallMicroseconds: Math.round(Number(process.hrtime.bigint() - wall) / 1000),
}));
