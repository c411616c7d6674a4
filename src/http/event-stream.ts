/**
 * A reply that stays open: server-sent events (text/event-stream). It is the last reply of its connection, so that
 * the connection ends with it when the process stops.
 */
import type { Context } from 'koa';
import { headersOfEvery, requestIdOf } from './respond.ts';

export const EVENT_STREAM_TYPE = 'text/event-stream';

/** How long a browser waits before it connects again. */
const RECONNECT_MS = 2_000;
/** What a reader may leave unread. One that is slower than this has stopped reading. */
const UNREAD_BYTES_MAX = 64 * 1024;

export interface EventStream {
  /** One line of JSON. Ends the stream of a reader that no longer reads. */
  readonly send: (event: string, data: string) => void;
  /** A comment, which shows every proxy on the way and the reader that the stream is alive. */
  readonly beat: () => void;
  /** The reader has gone away. `onEnd` was not called if it went before the stream could begin. */
  readonly isAbandoned: () => boolean;
  readonly end: () => void;
}

/** `onEnd` is called once, when either side has ended a stream that could begin. */
export function openEventStream(
  ctx: Context,
  headers: Readonly<Record<string, string>>,
  onEnd: () => void,
): EventStream {
  const { res } = ctx;
  // The response has no socket while it waits behind another one of its connection: the request always has.
  const { socket } = ctx.req;
  ctx.respond = false;
  res.shouldKeepAlive = false;
  res.writeHead(200, {
    'Content-Type': EVENT_STREAM_TYPE,
    // Nobody may store, compress or collect the events: they would arrive late.
    'Cache-Control': 'no-cache, no-transform',
    'X-Accel-Buffering': 'no',
    ...headersOfEvery(requestIdOf(ctx)),
    ...headers,
  });
  res.once('close', onEnd);
  // A reader that has gone away is noticed by `close`.
  res.on('error', () => {});
  const write = (text: string): void => {
    if (res.writableLength > UNREAD_BYTES_MAX) socket.destroy();
    else res.write(text);
  };
  write(`retry: ${RECONNECT_MS}\n\n`);
  return {
    send: (event, data) => write(`event: ${event}\ndata: ${data}\n\n`),
    beat: () => write(':\n\n'),
    isAbandoned: () => socket.destroyed,
    end: () => void res.end(),
  };
}
