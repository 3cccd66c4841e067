/**
 * Updates the usage of a stream by the data of one event. OpenAI-style streams say their usage in the last chunk, Anthropic-style streams in
 * `message_start` and, cumulative, in `message_delta`. Until then each piece of text counts as one token, so that a stream that breaks is
 * billed what was seen.
 */
export function noteUsage(usage, data) {
  if (data === "[DONE]") return;
  const event = JSON.parse(data);
  if (event.choices?.[0]?.delta?.content || event.delta?.text) usage.output++;
  const told = event.usage ?? event.message?.usage;
  if (!told) return;
  usage.output = told.completion_tokens ?? told.output_tokens ?? usage.output;
  const input = told.prompt_tokens ?? told.input_tokens;
  // Anthropic-style input leaves out what is read from a cache or written to it.
  if (input !== undefined) usage.input = input + (told.cache_read_input_tokens ?? 0) + (told.cache_creation_input_tokens ?? 0);
}
