/** The HTTP server under the app: limits and graceful shutdown. */
import { createServer, ServerResponse, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type Koa from 'koa';
import { ApiError } from '../domain/errors.ts';
import { errorBody } from './answer-errors.ts';
import { capConnections } from './connection-cap.ts';
import { countWaiting, PIPELINING } from './pipelining.ts';
import { newRequestId } from './respond.ts';
import type { ResponseRecorder } from './response-recorder.ts';

/** A client that sends more slowly only occupies a socket. */
const HEADERS_TIMEOUT_MS = 10_000;
export const REQUEST_TIMEOUT_MS = 15_000;
/** How often Node checks the limits; the default of 30 s would triple them. */
const CHECKING_INTERVAL_MS = 1_000;
/** Longer than the idle timeout of common load balancers, so that they close first. */
export const KEEP_ALIVE_TIMEOUT_MS = 65_000;
export const CONNECTIONS_MAX = 10_000;
const DRAIN_MS_MAX = 5_000;

export interface ListeningServer {
  readonly port: number;
  /** Accepts no more connections, and waits up to 5 seconds for requests in flight. */
  close(): Promise<void>;
}

interface ListenOptions {
  readonly host: string;
  readonly port: number;
  readonly sharesPort: boolean;
  /** 0 for no cap. */
  readonly connectionsPerAddress: number;
}

export async function listen(
  app: Koa,
  { host, port, sharesPort, connectionsPerAddress }: ListenOptions,
  baseUrl: string,
  responses: ResponseRecorder,
): Promise<ListeningServer> {
  const answer = app.callback();
  let isClosing = false;
  // While the server closes, each response is the last on its connection and says so. Otherwise a client that never
  // pauses would keep its connection until it is cut, with a charge in flight.
  class Response extends ServerResponse {
    override writeHead(status: number, ...rest: [never?, never?]): this {
      if (isClosing) this.shouldKeepAlive = false;
      return super.writeHead(status, ...rest);
    }
  }
  const server = createServer(
    {
      ServerResponse: Response,
      ...PIPELINING,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      connectionsCheckingInterval: CHECKING_INTERVAL_MS,
      noDelay: true,
    },
    (request, response) => {
      countWaiting(request, response);
      if (isTarget(request.url ?? '')) return void answer(request, response);
      refuse(response.socket, 'The request has no valid path.', baseUrl, responses);
    },
  );
  server.maxConnections = CONNECTIONS_MAX;
  capConnections(server, connectionsPerAddress);
  answerUnparsable(server, baseUrl, responses);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host, reusePort: sharesPort }, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      isClosing = true;
      return close(server);
    },
  };
}

/** Requests that are not valid HTTP also get an error in our shape, and the connection is closed. */
function answerUnparsable(server: Server, baseUrl: string, responses: ResponseRecorder): void {
  server.on('clientError', (_, socket) => {
    refuse(socket, 'This is not a valid HTTP request.', baseUrl, responses);
  });
}

/** A path or a whole URL. Anything else would cause an internal error later, with the text in the log. */
function isTarget(target: string): boolean {
  return target.startsWith('/') || URL.canParse(target);
}

function refuse(
  socket: Duplex | null,
  message: string,
  baseUrl: string,
  responses: ResponseRecorder,
): void {
  if (!socket?.writable) return;
  const error = new ApiError('invalid_request', message);
  const requestId = newRequestId();
  responses.unparsable(requestId, error);
  const body = JSON.stringify(errorBody(error, baseUrl, requestId));
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `X-Content-Type-Options: nosniff\r\nX-Request-Id: ${requestId}\r\nConnection: close\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

async function close(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), DRAIN_MS_MAX);
  await closed;
  clearTimeout(timer);
}
