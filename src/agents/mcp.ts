/**
 * Calls agents that are MCP servers over streamable HTTP: the capability is the tool's name, the payload its arguments.
 * Works with older servers and with stateless ones.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Client, ProtocolError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { GuardedFetch } from '../egress/guarded-fetch.ts';
import { failed, type Adapter, type AgentRequest } from './adapter.ts';

const CLIENT = { name: 'farebox', version: '0.1.0' };
/** The guarded fetch's signal ends the call well before this. */
const TIMEOUT_MS = 3_600_000;
/** Servers say when to ask for the rest of a stream that has ended: at once and again, or never, if they like. */
const STREAM_AGAIN_MS = 1_000;
/** A session that the server keeps is of no further use to anybody, and servers end idle ones themselves. */
const ENDED_WITHIN_MS = 1_000;

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
    if (!ProtocolError.isInstance(error)) throw error;
    return failed('agent_refused', `${error.message} (${error.code})`);
  } finally {
    guarded.signal.removeEventListener('abort', stop);
    await client.close();
  }
};

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
