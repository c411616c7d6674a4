/** The HTTP server under the app: limits and graceful shutdown. */
import { createServer, ServerResponse, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type Koa from 'koa';
import { ApiError } from '../domain/errors.ts';
import { errorBody } from './answer-errors.ts';
import { capConnections } from './connection-cap.ts';
import { countWaiting, PIPELINING } from './pipelining.ts';
import { headersOfEvery, JSON_TYPE, newRequestId } from './respond.ts';
import type { ResponseRecorder } from './response-recorder.ts';

/** A client that sends more slowly only occupies a socket. */
const HEADERS_TIMEOUT_MS = 10_000;
export const REQUEST_TIMEOUT_MS = 15_000;
/** How often Node checks the limits; the default of 30 s would triple them. */
const CHECKING_INTERVAL_MS = 1_000;
/** Longer than the idle timeout of common load balancers, so that they close first. */
export const KEEP_ALIVE_TIMEOUT_MS = 65_000;
/** For a client to notice that its request is refused. */
const READ_ON_MS = 1_000;
/**
 * A client that takes nothing of a response for this long has stopped reading, and what it leaves would stay in
 * memory. The system takes up to a megabyte ahead of a slow client, so its pauses look long.
 */
const UNREAD_TIMEOUT_MS = 120_000;
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
  readonly unreadTimeoutMs?: number;
}

export async function listen(
  app: Koa,
  options: ListenOptions,
  baseUrl: string,
  responses: ResponseRecorder,
): Promise<ListeningServer> {
  const { host, port, sharesPort, connectionsPerAddress } = options;
  const { unreadTimeoutMs = UNREAD_TIMEOUT_MS } = options;
  const answer = app.callback();
  const refused = refusals(baseUrl, responses);
  let isClosing = false;
  // While the server closes, each response is the last on its connection and says so. Otherwise a client that never
  // pauses would keep its connection until it is cut, with a charge in flight.
  class Response<Request extends IncomingMessage> extends LimitedResponse<Request> {
    override readonly unreadTimeoutMs = unreadTimeoutMs;

    override writeHead(status: number, ...rest: [never?, never?]): this {
      if (isClosing) this.shouldKeepAlive = false;
      return super.writeHead(status, ...rest);
    }
  }
  const server = createServer(
    {
      ServerResponse: Response,
      ...PIPELINING,
      // Node would answer without a body.
      requireHostHeader: false,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      connectionsCheckingInterval: CHECKING_INTERVAL_MS,
      noDelay: true,
    },
    (request, response) => {
      countWaiting(request, response);
      const problem = problemOf(request);
      if (problem === undefined) return void answer(request, response);
      refuse(response, refused(problem));
    },
  );
  server.maxConnections = CONNECTIONS_MAX;
  capConnections(server, connectionsPerAddress);
  answerUnparsable(server, refused);
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

/** A response that closes its connection when the client stops reading it. */
abstract class LimitedResponse<Request extends IncomingMessage> extends ServerResponse<Request> {
  abstract readonly unreadTimeoutMs: number;
  #isLimited = false;

  override write(chunk: unknown, ...rest: never[]): boolean {
    const isTaken = super.write(chunk, ...(rest as []));
    if (!isTaken) this.#limit();
    return isTaken;
  }

  override end(...rest: never[]): this {
    super.end(...(rest as []));
    if (this.socket && this.socket.writableLength > 0) this.#limit();
    return this;
  }

  /** What a pipelined request got was written before its turn, and is sent now. */
  override assignSocket(socket: Socket): void {
    super.assignSocket(socket);
    if (socket.writableLength > 0) this.#limit();
  }

  /** Until all of it is taken. The socket's timer starts again whenever the client takes a part. */
  #limit(): void {
    const { socket } = this;
    if (!socket || this.#isLimited) return;
    this.#isLimited = true;
    socket.setTimeout(this.unreadTimeoutMs);
    const lift = () => {
      this.#isLimited = false;
      socket.setTimeout(0);
      this.off('drain', lift).off('finish', lift);
    };
    this.on('drain', lift);
    // Before Node's own listener, which sets the timer of an idle connection.
    this.prependListener('finish', lift);
  }
}

/**
 * Requests that Node itself would refuse without a body get an error in our shape too, and the connection is
 * closed.
 */
function answerUnparsable(server: Server, refused: Refused): void {
  server.on('clientError', (_, socket) => {
    const earlier = pendingOf(socket);
    if (!earlier) return refuseSocket(socket, refused('This is not a valid HTTP request.'));
    if (!earlier.shouldKeepAlive) return;
    earlier.shouldKeepAlive = false;
    // A response that has begun does not say so, and Node would keep the connection.
    earlier.once('close', () => socket.destroy());
  });
  server.on('checkExpectation', (_, response) => {
    refuse(response, refused('The header Expect can only be 100-continue.'));
  });
}

/**
 * The response that an earlier, complete request of the connection waits for. What follows that request, such as bytes
 * beyond its Content-Length, must not be answered first: the client would take the error for the outcome of a charge.
 */
function pendingOf(socket: Duplex): ServerResponse | undefined {
  const { _httpMessage: response } = socket as { _httpMessage?: ServerResponse | null };
  return response?.req.complete ? response : undefined;
}

function problemOf({
  method,
  url = '',
  httpVersion,
  headers,
}: IncomingMessage): string | undefined {
  if (method === 'CONNECT') return 'This is not a proxy: it does not accept the method CONNECT.';
  if (!isTarget(url)) return 'The request has no valid path.';
  if (headers.host === undefined && httpVersion === '1.1') return 'The request has no Host header.';
  return undefined;
}

/** A path or a whole URL. Anything else would cause an internal error later, with the text in the log. */
function isTarget(target: string): boolean {
  return target.startsWith('/') || URL.canParse(target);
}

interface Refusal {
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: string;
}

type Refused = (message: string) => Refusal;

/** Records a refusal and returns what to answer, with the status 400. */
function refusals(baseUrl: string, responses: ResponseRecorder): Refused {
  return (message) => {
    const error = new ApiError('invalid_request', message);
    const requestId = newRequestId();
    responses.unparsable(requestId, error);
    const body = JSON.stringify(errorBody(error, baseUrl, requestId));
    const headers = {
      'Content-Type': JSON_TYPE,
      ...headersOfEvery(requestId),
      Connection: 'close',
      'Content-Length': Buffer.byteLength(body),
    };
    return { headers, body };
  };
}

/** In its turn, after earlier requests on the connection. */
function refuse(response: ServerResponse, { headers, body }: Refusal): void {
  response.writeHead(400, headers).end(body);
}

/**
 * Node no longer limits the time of such a connection, and would still take the rest of its request: a charge
 * would be made after the client was told that it failed. So what else arrives is discarded. It is still read
 * for a while, because closing at once would reset the connection before a client that is still sending has
 * read the response.
 */
function refuseSocket(socket: Duplex, { headers, body }: Refusal): void {
  if (!socket.writable) return;
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  // Such a listener also takes the connection away from Node's parser.
  socket.removeAllListeners('data').on('data', () => {});
  socket.end(`HTTP/1.1 400 Bad Request\r\n${lines.join('')}\r\n${body}`);
  setTimeout(() => socket.destroy(), READ_ON_MS).unref();
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
