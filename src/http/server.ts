/** The HTTP server under the app: its limits, and an end without cutting anybody off. */
import { createServer, ServerResponse, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type Koa from 'koa';
import { ApiError } from '../domain/errors.ts';
import { errorBody } from './answer-errors.ts';
import { newRequestId } from './respond.ts';

/** A client that sends slower holds a socket for nothing. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 15_000;
/** How often Node looks for them; by default every 30 s, which would make three times of each limit. */
const CHECKING_INTERVAL_MS = 1_000;
/** Longer than the idle time of usual load balancers, so that it is they who close. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
const CONNECTIONS_MAX = 10_000;
const DRAIN_MS_MAX = 5_000;

export interface ListeningServer {
  readonly port: number;
  /** Takes no more, lets what is in flight end, for 5 seconds at most. */
  close(): Promise<void>;
}

export async function listen(
  app: Koa,
  { host, port, sharesPort }: { host: string; port: number; sharesPort: boolean },
  docsUrl: string,
): Promise<ListeningServer> {
  const answer = app.callback();
  let isClosing = false;
  // While the server closes, each answer is the last on its line and says so: a client that never pauses
  // would hold the line until it is cut, with a charge of his on it.
  class Response extends ServerResponse {
    override writeHead(status: number, ...rest: [never?, never?]): this {
      if (isClosing) this.shouldKeepAlive = false;
      return super.writeHead(status, ...rest);
    }
  }
  const server = createServer(
    {
      ServerResponse: Response,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      connectionsCheckingInterval: CHECKING_INTERVAL_MS,
      noDelay: true,
    },
    (request, response) => {
      if (isTarget(request.url ?? '')) return void answer(request, response);
      refuse(response.socket, 'The request names no valid path.', docsUrl);
    },
  );
  server.maxConnections = CONNECTIONS_MAX;
  answerUnparsable(server, docsUrl);
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

/** What is not HTTP gets an answer in our shape too, and the connection is closed. */
function answerUnparsable(server: Server, docsUrl: string): void {
  server.on('clientError', (_, socket) => {
    refuse(socket, 'This is not a valid HTTP request.', docsUrl);
  });
}

/** A path, or a whole URL. What is neither would be an error of ours further in, and its text in the log. */
function isTarget(target: string): boolean {
  return target.startsWith('/') || URL.canParse(target);
}

function refuse(socket: Duplex | null, message: string, docsUrl: string): void {
  if (!socket?.writable) return;
  const error = new ApiError('invalid_request', message);
  const requestId = newRequestId();
  const body = JSON.stringify(errorBody(error, docsUrl, requestId));
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `X-Request-Id: ${requestId}\r\nConnection: close\r\n` +
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
