/**
 * Calls agents that are MCP servers over streamable HTTP: the capability is the tool's name, the payload its arguments.
 * Works with older servers and with stateless ones.
 */
import { setTimeout as delay } from 'node:timers/promises';
import {
  Client,
  ProtocolError,
  StreamableHTTPClientTransport,
  type JSONRPCMessage,
  type Transport,
} from '@modelcontextprotocol/client';
import { HOUR_MS } from '../domain/durations.ts';
import type { GuardedFetch } from '../egress/guarded-fetch.ts';
import { failed, type Adapter, type AgentRequest } from './adapter.ts';

const CLIENT = { name: 'farebox', version: '0.1.0' };
/** The guarded fetch's signal ends the call well before this. */
const TIMEOUT_MS = HOUR_MS;
/** Servers say when to ask for the rest of a stream that has ended: at once and again, or never, if they like. */
const STREAM_AGAIN_MS = 1_000;
/** A session that the server keeps is of no further use to anybody, and servers end idle ones themselves. */
const ENDED_WITHIN_MS = 1_000;
/**
 * The most values in a message, not counting `structuredContent`, which the SDK does not check. The SDK
 * describes every wrong value in its error: for a megabyte of them, this blocks the worker for more than ten
 * seconds and takes gigabytes.
 */
const VALUES_MAX = 5_000;
/**
 * The requests that a server may send in one call. The SDK answers each in its own request; a live server
 * sends a ping at times.
 */
const REQUESTS_MAX = 1_000;
const STRUCTURE = 'structuredContent';

export const callMcp: Adapter = async (request, guarded) => {
  const client = new Client(CLIENT, { versionNegotiation: { mode: 'auto' } });
  const transport = new StreamableHTTPClientTransport(new URL(request.endpoint), {
    fetch: withIdempotencyKey(request, guarded),
    reconnectionScheduler: (reconnect) => {
      const timer = setTimeout(reconnect, STREAM_AGAIN_MS);
      return () => clearTimeout(timer);
    },
  });
  // While the SDK negotiates the version, it heeds only this.
  const stop = () => void transport.close();
  let excess: string | undefined;
  let requests = 0;
  checkMessages(transport, (message) => {
    if ('method' in message && 'id' in message) requests += 1;
    if (requests > REQUESTS_MAX) excess ??= `It sent more than ${REQUESTS_MAX} requests.`;
    if (hasTooManyValues(message)) {
      excess ??= `It sent more than ${VALUES_MAX} values in a message, outside \`${STRUCTURE}\`.`;
    }
    if (excess !== undefined) stop();
    return excess === undefined;
  });
  guarded.signal.addEventListener('abort', stop);
  const options = { signal: guarded.signal, timeout: TIMEOUT_MS };
  try {
    await client.connect(transport, options);
    const { capability: name, payload } = request;
    const result = await client.callTool({ name, arguments: { ...payload } }, options);
    // The answer is there: a server that does not respond to this must not delay it, or have the tool called again.
    const ending = transport.terminateSession().catch(() => {});
    await Promise.race([ending, delay(ENDED_WITHIN_MS, undefined, { ref: false })]);
    return result.isError
      ? failed('agent_error', textOf(result.content))
      : { kind: 'answered', value: result };
  } catch (error) {
    if (excess !== undefined) return failed('invalid_answer', excess);
    if (!ProtocolError.isInstance(error)) throw error;
    return failed('agent_refused', `${error.message} (${error.code})`);
  } finally {
    guarded.signal.removeEventListener('abort', stop);
    await client.close();
  }
};

/** The SDK gets only the messages that pass. It sets `onmessage` several times. */
function checkMessages(transport: Transport, passes: (message: JSONRPCMessage) => boolean): void {
  let receive: Transport['onmessage'];
  Object.defineProperty(transport, 'onmessage', {
    get: (): Transport['onmessage'] => {
      const handler = receive;
      return handler && ((message, extra) => void (passes(message) && handler(message, extra)));
    },
    set: (handler: Transport['onmessage']) => {
      receive = handler;
    },
  });
}

function hasTooManyValues(message: JSONRPCMessage): boolean {
  const rest: unknown[] = [message];
  for (let count = 0; rest.length > 0; count += 1) {
    const value = rest.pop();
    if (typeof value !== 'object' || value === null) continue;
    const isResult = 'result' in message && value === message.result;
    const inside = Object.entries(value).filter(([key]) => !isResult || key !== STRUCTURE);
    if (count + rest.length + inside.length > VALUES_MAX) return true;
    for (const [, each] of inside) rest.push(each);
  }
  return false;
}

/** Only on the call: a server that saw the key on the handshake would replay the handshake's answer. */
function withIdempotencyKey(
  { invocationId }: AgentRequest,
  guarded: GuardedFetch,
): (url: string | URL, init?: RequestInit) => Promise<Response> {
  return (url, init = {}) => {
    const isCall = typeof init.body === 'string' && methodOf(init.body) === 'tools/call';
    if (!isCall) return guarded.fetch(url, init);
    const headers = new Headers(init.headers);
    headers.set('Idempotency-Key', invocationId);
    return guarded.fetch(url, { ...init, headers });
  };
}

function methodOf(body: string): unknown {
  return (JSON.parse(body) as { method?: unknown }).method;
}

function textOf(content: readonly { readonly type: string; readonly text?: unknown }[]): string {
  const texts = content.filter(({ type }) => type === 'text').map(({ text }) => String(text));
  return texts.join('\n') || 'The tool failed.';
}
