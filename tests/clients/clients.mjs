// Asks a server for each chat completion of a list, with each client, and prints what the client made of it.
//
//     node clients.mjs BASE_URL < requests.json > outcomes.jsonl
//
// A request is {model, tools, tool_choice}; an outcome {client, model, content, reasoning, calls, finish}, where reasoning
// is null for a client that does not expose any. Used by test_clients.py, which says what is right.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { jsonSchema, streamText, tool } from "ai";
import OpenAI from "openai";

const baseURL = process.argv[2];
const openai = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
const vercel = createOpenAICompatible({ name: "local", baseURL, apiKey: "none" });

const messages = [{ role: "user", content: "Go on." }];

function body(request) {
  return { model: request.model, messages, tools: request.tools, tool_choice: request.tool_choice };
}

const clients = {
  async "openai-node stream"(request) {
    let reasoning = "";
    const stream = openai.chat.completions.stream(body(request));
    stream.on("chunk", (chunk) => (reasoning += chunk.choices[0]?.delta?.reasoning_content ?? ""));
    const { message, finish_reason: finish } = (await stream.finalChatCompletion()).choices[0];
    const calls = (message.tool_calls ?? []).map((call) => [call.function.name, call.function.arguments]);
    return { content: message.content ?? "", reasoning, calls, finish };
  },

  async "openai-node whole"(request) {
    const { message, finish_reason: finish } = (await openai.chat.completions.create(body(request))).choices[0];
    const calls = (message.tool_calls ?? []).map((call) => [call.function.name, call.function.arguments]);
    return { content: message.content ?? "", reasoning: message.reasoning_content ?? "", calls, finish };
  },

  async "ai streamText"(request) {
    const tools = (request.tools ?? []).map(({ function: it }) => [it.name, tool({ inputSchema: jsonSchema(it.parameters ?? {}) })]);
    const errors = [];
    const result = streamText({
      model: vercel(request.model),
      messages,
      tools: Object.fromEntries(tools),
      toolChoice: request.tool_choice,
      maxRetries: 0,
      onError: ({ error }) => errors.push(error),
    });
    const [content, reasoning, calls, finish] = await Promise.all([
      result.text,
      result.reasoningText,
      result.toolCalls,
      result.finishReason,
    ]);
    if (errors.length) throw errors[0];
    return {
      content,
      reasoning: reasoning ?? "",
      calls: calls.map((call) => [call.toolName, JSON.stringify(call.input)]),
      finish: finish.replaceAll("-", "_"),
    };
  },
};

let input = "";
for await (const piece of process.stdin) input += piece;
for (const request of JSON.parse(input)) {
  for (const [client, ask] of Object.entries(clients)) {
    const outcome = await ask(request).catch((error) => ({ error: String(error) }));
    console.log(JSON.stringify({ client, model: request.model, ...outcome }));
  }
}
