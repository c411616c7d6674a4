/**
 * An MCP tool server with two paid tools, over streamable HTTP. Settings: FAREBOX_URL,
 * FAREBOX_SECRET_KEY, PORT. Prints its URL when it is ready.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Farebox } from '@farebox/client';
import {
  type NodeIncomingMessageLike,
  localhostHostValidation,
  localhostOriginValidation,
  toNodeHandler,
} from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { paid } from './paid.ts';
import { countWords, summarize } from './text.ts';

/** Dollars per call. */
const farebox = new Farebox();
const prices = farebox.withPrices({ word_count: 0.01, summarize: 2 });

/** Arguments are checked before the handler runs, so a call that cannot work is never charged. */
const text = z.string().min(1).max(100_000).describe('Plain English text');

function toolServer(): McpServer {
  const server = new McpServer({ name: 'paid-text-tools', version: '0.1.0' });
  server.registerTool(
    'word_count',
    {
      description: 'Counts words, sentences and characters of a text. Costs 0.01 USD a call.',
      inputSchema: z.object({ text }),
    },
    paid(farebox, prices, 'word_count', (args: { text: string }) => countWords(args.text)),
  );
  server.registerTool(
    'summarize',
    {
      description: 'Picks the sentences that say most about a text. Costs 2 USD a call.',
      inputSchema: z.object({ text, sentences: z.int().min(1).max(20).default(2) }),
    },
    paid(farebox, prices, 'summarize', (args: { text: string; sentences: number }) => ({
      summary: summarize(args.text, args.sentences),
    })),
  );
  return server;
}

const handleMcp = toNodeHandler(createMcpHandler(toolServer));
// A web page that the user visits must not be able to call tools on this machine.
const isHostAllowed = localhostHostValidation();
const isOriginAllowed = localhostOriginValidation();

const http = createServer((request, response) => {
  if (!isHostAllowed(request, response) || !isOriginAllowed(request, response)) return;
  if (request.url !== '/mcp') {
    response.writeHead(404).end();
    return;
  }
  // The package's type of a request does not fit node's own under exactOptionalPropertyTypes.
  void handleMcp(request as NodeIncomingMessageLike, response);
});

http.listen(Number(process.env['PORT'] ?? 8090), '127.0.0.1', () => {
  const { port } = http.address() as AddressInfo;
  process.stdout.write(`MCP tool server ready: http://127.0.0.1:${port}/mcp\n`);
});
