/**
 * A receiver of events on loopback: it checks every signature with the library of Standard Webhooks and keeps
 * each request.
 */
import { createServer, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { closeNow, listenOnLoopback } from './loopback.ts';

export interface ReceivedEvent {
  /** The header `webhook-id`. */
  readonly id: string;
  /** As it was sent. */
  readonly raw: string;
  readonly payload: {
    readonly type: string;
    readonly timestamp: string;
    readonly data: Record<string, unknown>;
  };
  readonly headers: Record<string, string>;
  readonly atMs: number;
}

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

const accept = (response: ServerResponse) => void response.writeHead(200).end('received');

export async function startReceiver() {
  const events: ReceivedEvent[] = [];
  let respond: (response: ServerResponse, event: ReceivedEvent) => void = accept;
  const server = createServer((request, response) => {
    void text(request).then((raw) => {
      const headers = request.headers as Record<string, string>;
      const payload = JSON.parse(raw) as ReceivedEvent['payload'];
      const event = { id: headers['webhook-id'] ?? '', raw, payload, headers, atMs: Date.now() };
      events.push(event);
      return respond(response, event);
    });
  });
  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}/events`,
    events,
    /** The events of the types, in order of arrival. */
    received: (...types: string[]) => events.filter(({ payload }) => types.includes(payload.type)),
    respondWith(next: typeof respond = accept): void {
      respond = next;
    },
    stop: () => closeNow(server),
  };
}

/** Throws unless the event is signed with the secret, now. */
export function verify(secret: string, { raw, headers }: ReceivedEvent): unknown {
  return new Webhook(secret).verify(raw, headers);
}
