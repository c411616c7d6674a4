/**
 * Sells a language model by the token: holds the most tokens that a response can use, streams it, and captures what its
 * `usage` says. The rate card of the tool has the prices. A caller who leaves early pays for the whole response,
 * because the model has it too. A response without `usage` is free. Speaks OpenAI's protocol on both sides, for text
 * only.
 * Settings: FAREBOX_URL, FAREBOX_SECRET_KEY, UPSTREAM_URL, UPSTREAM_KEY, UPSTREAM_MODEL, PORT.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Farebox, FareboxError, serviceKeyOf, usd } from '@farebox/client';

const farebox = new Farebox();
/** The model that the prices are of. */
const MODEL = process.env['UPSTREAM_MODEL'];
const TOOL = 'chat';
/** Dollars per token. A new price makes a new version of the card, which the receipts name. */
const CARD = { input: usd('3').per(1_000_000), output: usd('15').per(1_000_000) };
const OUTPUT_TOKENS_MAX = 4_096;
/** Far more than what the model can read. A caller has shown no key yet. */
const BODY_BYTES_MAX = 4 * 1024 * 1024;
/** Longer than any response takes: after the hold has expired, nothing can be captured. */
const HOLD_SECONDS = 3_600;
/**
 * The fields of the caller's request that are passed on. Others, such as web search, have costs that these
 * prices do not cover.
 */
const PASSED_ON = new Set([
  'frequency_penalty',
  'logit_bias',
  'logprobs',
  'messages',
  'model',
  'parallel_tool_calls',
  'presence_penalty',
  'reasoning_effort',
  'response_format',
  'seed',
  'stop',
  'temperature',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
]);
const TO_CALLER = new Set([
  'account_keys_closed',
  'approval_required',
  'developer_not_allowed',
  'insufficient_balance',
  'invalid_api_key',
  'mode_mismatch',
  'rate_limited',
  'service_unavailable',
  'spend_limit_reached',
  'tool_not_allowed',
]);

/** The types of errors that the caller can mend, whichever code they have. */
const TYPES_TO_CALLER = new Set(['payment_error', 'rate_limit_error']);

/** Changes nothing if the tool has these prices already. */
async function register(): Promise<void> {
  try {
    await farebox.tools.create({ name: TOOL, card: CARD });
  } catch (error) {
    if (!FareboxError.isInstance(error) || error.toolId === undefined) throw error;
    await farebox.tools.update(error.toolId, { card: CARD });
  }
}

const server = createServer((request, response) => void answer(request, response));

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const conversation = await bodyOf(request);
    if (conversation === undefined) return refuseSize(response);
    const asked = textOnly(conversation);
    if (!asked) return refuseContent(response);
    const { max_completion_tokens: outputTokensMax } = asked;
    const hold = await farebox.holds.place({
      apiKey: serviceKeyOf(request.headers),
      tool: TOOL,
      // No token of text is shorter than a byte.
      units: { input: Buffer.byteLength(conversation), output: outputTokensMax },
      expiresIn: HOLD_SECONDS,
    });
    const tokens = { input: 0, output: 0 };
    try {
      await stream(asked, response, tokens);
    } catch (error) {
      process.stderr.write(`upstream: ${String(error)}\n`);
    }
    await settle(hold.id, tokens, response);
  } catch (error) {
    refuse(response, error);
  }
}

/** Undefined when it is too long. */
async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > BODY_BYTES_MAX) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

interface Message {
  content?: string | { type?: string }[] | null;
  audio?: unknown;
}

interface Asked {
  model: string;
  messages: Message[];
  max_completion_tokens?: unknown;
  /** Its older name. */
  max_tokens?: unknown;
}

/**
 * The part of a request that is passed on. Undefined unless the request is for our model and all of its
 * conversation is text. Another model has other prices. An image or a file is a URL or an id of a few bytes,
 * but costs thousands of tokens, which would not be held.
 */
function textOnly(conversation: string): { max_completion_tokens: number } | undefined {
  try {
    const asked = JSON.parse(conversation) as Asked;
    if (asked.model !== MODEL || !asked.messages.every(isText)) return undefined;
    const members = Object.entries(asked).filter(([name]) => PASSED_ON.has(name));
    return { ...Object.fromEntries(members), max_completion_tokens: outputTokensMaxOf(asked) };
  } catch {
    return undefined;
  }
}

/** As few as the caller wants to pay for. */
function outputTokensMaxOf({ max_completion_tokens: max, max_tokens: older }: Asked): number {
  const wanted = Number(max ?? older ?? OUTPUT_TOKENS_MAX);
  return wanted >= 1 && wanted < OUTPUT_TOKENS_MAX ? Math.floor(wanted) : OUTPUT_TOKENS_MAX;
}

function isText({ content, audio }: Message): boolean {
  if (audio !== undefined && audio !== null) return false;
  if (!Array.isArray(content)) return true;
  return content.every(({ type }) => type === 'text' || type === 'refusal');
}

function refuseContent(response: ServerResponse): void {
  const message = `The body must be JSON for the model ${MODEL}, and its messages must be text, without images, files or audio.`;
  refuseBody(response, 400, { code: 'unsupported_content', message });
}

function refuseSize(response: ServerResponse): void {
  const message = `The body must have at most ${BODY_BYTES_MAX} bytes.`;
  refuseBody(response, 413, { code: 'body_too_large', message });
}

function refuseBody(response: ServerResponse, status: number, error: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ error }));
}

interface Tokens {
  input: number;
  output: number;
}

/**
 * Passes on what the model says, and sets `tokens` to what it used, which comes last. So it reads to the end, even when
 * nobody listens any more: Node drops what is written for a caller who has left.
 */
async function stream(asked: object, response: ServerResponse, tokens: Tokens): Promise<void> {
  // One response: what is held does not pay for more.
  const options = { stream: true, stream_options: { include_usage: true }, n: 1 };
  const streamed = await fetch(`${process.env['UPSTREAM_URL']}/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${process.env['UPSTREAM_KEY']}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ ...asked, ...options }),
  });
  if (!streamed.ok || !streamed.body) throw new Error(`status ${streamed.status}`);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  let line = '';
  for await (const part of streamed.body.pipeThrough(new TextDecoderStream())) {
    response.write(part);
    const lines = (line + part).split('\n');
    line = lines.pop() ?? '';
    for (const data of lines) readUsage(data, tokens);
  }
  if (tokens.input + tokens.output === 0)
    throw new Error('the response has no usage, so it is free');
}

function readUsage(line: string, tokens: Tokens): void {
  if (!line.startsWith('data: {')) return;
  const { usage } = JSON.parse(line.slice('data: '.length)) as {
    usage?: { prompt_tokens: number; completion_tokens: number } | null;
  };
  if (usage) Object.assign(tokens, { input: usage.prompt_tokens, output: usage.completion_tokens });
}

async function settle(holdId: string, tokens: Tokens, response: ServerResponse): Promise<void> {
  if (tokens.input + tokens.output === 0) {
    await farebox.holds.release({ holdId });
    if (!response.headersSent) response.writeHead(502);
    response.end();
    return;
  }
  const { id, amount, receipt } = await capture(holdId, tokens);
  // A comment of the stream, which clients of OpenAI's protocol skip.
  response.end(`: farebox ${JSON.stringify({ id, amount, receipt })}\n\n`);
}

/** If nothing can be captured, the money is released at once, not when the hold expires. */
async function capture(holdId: string, { input, output }: Tokens) {
  try {
    const request = { holdId, units: { input, output }, over: 'cap' } as const;
    return await farebox.holds.capture(request).catch((error: unknown) => {
      if (!FareboxError.isInstance(error) || error.outcome !== 'unknown') throw error;
      // The response was lost. With the same key, the capture is found, or made now.
      return farebox.holds.capture({ ...request, idempotencyKey: error.idempotencyKey });
    });
  } catch (error) {
    await farebox.holds.release({ holdId }).catch(() => {});
    throw error;
  }
}

/** The caller sees the errors that the caller can mend. A wrong secret key is not one of them. */
function refuse(response: ServerResponse, error: unknown): void {
  if (response.headersSent) return void response.destroy();
  const isCallers = FareboxError.isInstance(error) && isForCaller(error);
  if (!isCallers) process.stderr.write(`${String(error)}\n`);
  const status = isCallers ? (error.status ?? 503) : 500;
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ error: isCallers ? error : { code: 'internal_error' } }));
}

function isForCaller({ code, type = '' }: FareboxError): boolean {
  return TO_CALLER.has(code) || TYPES_TO_CALLER.has(type);
}

await register();
server.listen(Number(process.env['PORT'] ?? 8092), '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`LLM proxy ready: http://127.0.0.1:${port}/v1\n`);
});
