/**
 * Decrypts payloads for the Temporal UI and the `temporal` command, by Temporal's protocol for codec servers.
 * It listens on the loopback address only, and its URL contains a random token, because the UI of a cluster
 * of your own sends no credentials.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import type { Payload, PayloadCodec } from '@temporalio/common';

export interface CodecServer {
  /** With the token. The UI appends `/decode`. */
  readonly url: string;
  close(): Promise<void>;
}

/** A payload as the protocol sends it: bytes in base64. */
interface WirePayload {
  readonly metadata?: Readonly<Record<string, string>>;
  readonly data?: string;
}

const PATH = /^\/(?<token>[^/]+)\/(?<operation>encode|decode)$/;

export async function serveCodec(
  codec: PayloadCodec,
  { port, uiOrigin }: { readonly port: number; readonly uiOrigin: string | undefined },
): Promise<CodecServer> {
  const token = randomBytes(24).toString('base64url');
  const server = createServer((request, response) => {
    if (uiOrigin !== undefined && request.headers.origin === uiOrigin) allow(response, uiOrigin);
    answer(codec, token, request, response).catch((error: unknown) =>
      response.writeHead(400).end(error instanceof Error ? error.message : undefined),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/${token}`;
  return {
    url,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function allow(response: ServerResponse, origin: string): void {
  response.setHeader('access-control-allow-origin', origin);
  response.setHeader('access-control-allow-headers', 'content-type,x-namespace,authorization');
  response.setHeader('access-control-allow-methods', 'POST');
  response.setHeader('vary', 'origin');
}

async function answer(
  codec: PayloadCodec,
  token: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  // A preflight request; without the headers above, the browser sends no other.
  if (request.method === 'OPTIONS') return void response.writeHead(204).end();
  const asked = PATH.exec(request.url ?? '')?.groups;
  if (request.method !== 'POST' || !asked || !isEqual(asked['token'] ?? '', token)) {
    return void response.writeHead(404).end();
  }
  const { payloads = [] } = (await json(request)) as { payloads?: WirePayload[] };
  const given = payloads.map(fromWire);
  const made = await (asked['operation'] === 'decode' ? codec.decode(given) : codec.encode(given));
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ payloads: made.map(toWire) }));
}

function isEqual(given: string, token: string): boolean {
  return given.length === token.length && timingSafeEqual(Buffer.from(given), Buffer.from(token));
}

function fromWire({ metadata = {}, data = '' }: WirePayload): Payload {
  const bytes = Object.entries(metadata).map(([name, text]) => [name, Buffer.from(text, 'base64')]);
  return { metadata: Object.fromEntries(bytes), data: Buffer.from(data, 'base64') };
}

function toWire({ metadata, data }: Payload): WirePayload {
  const texts = Object.entries(metadata ?? {}).map(([name, bytes]) => [name, base64(bytes)]);
  return { metadata: Object.fromEntries(texts), data: base64(data ?? new Uint8Array()) };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
