import { once } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";

/**
 * A fake provider. It sends three pieces of text, then the usage: 100 tokens in, 50 out. The model "fails" answers 500, "hangs-up" breaks its
 * stream after the pieces, and "waits" sends nothing more until the client leaves.
 */
export async function startUpstream() {
  const server = createServer(async (req, res) => {
    const { model } = JSON.parse(await text(req));
    if (model === "fails") return res.writeHead(500).end();
    res.writeHead(200, { "content-type": "text/event-stream" });
    const { start, pieces, end } = req.url === "/v1/messages" ? anthropic : openAi;
    for (const event of [...start, ...pieces]) res.write(event);
    if (model === "waits") await once(res, "close");
    else if (model === "hangs-up") setImmediate(() => res.destroy());
    else res.end(end.join(""));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return server;
}

const words = ["Rate", " limits", " work."];
const chunk = (data) => `data: ${JSON.stringify(data)}\n\n`;
const event = (data) => `event: ${data.type}\n${chunk(data)}`;

const openAi = {
  start: [],
  pieces: words.map((content) => chunk({ choices: [{ delta: { content } }] })),
  end: [chunk({ choices: [], usage: { prompt_tokens: 100, completion_tokens: 50, total_tokens: 150 } }), "data: [DONE]\n\n"],
};

const anthropic = {
  start: [event({ type: "message_start", message: { usage: { input_tokens: 80, cache_read_input_tokens: 20, output_tokens: 0 } } })],
  pieces: words.map((text) => event({ type: "content_block_delta", delta: { type: "text_delta", text } })),
  end: [event({ type: "message_delta", delta: {}, usage: { output_tokens: 50 } }), event({ type: "message_stop" })],
};
