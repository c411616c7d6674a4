/**
 * An MCP tool server with two paid tools, over streamable HTTP. Settings: FAREBOX_URL,
 * FAREBOX_SECRET_KEY, PORT. Prints its URL when it is ready.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Farebox } from '@farebox/client';
import { paidTool } from '@farebox/client/mcp';
import {
  type NodeIncomingMessageLike,
  localhostHostValidation,
  localhostOriginValidation,
  toNodeHandler,
} from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { countWords, summarize } from './text.ts';

const farebox = new Farebox();

const input = z.string().min(1).max(100_000).describe('Plain English text');

/** Arguments are validated before the handler runs, so a call with invalid arguments is never charged. */
function toolServer(): McpServer {
  const server = new McpServer({ name: 'paid-text-tools', version: '0.1.0' });
  server.registerTool(
    'word_count',
    {
      description: 'Counts words, sentences and characters of a text. Costs $0.01 a call.',
      inputSchema: z.object({ text: input }),
    },
    paidTool(farebox, { tool: 'word_count', price: '0.01' }, ({ text }) =>
      resultOf({ ...countWords(text) }),
    ),
  );
  server.registerTool(
    'summarize',
    {
      description: 'Picks the sentences that say most about a text. Costs $2.00 a call.',
      inputSchema: z.object({ text: input, sentences: z.int().min(1).max(20).default(2) }),
    },
    paidTool(farebox, { tool: 'summarize', price: '2' }, ({ text, sentences }) =>
      resultOf({ summary: summarize(text, sentences) }),
    ),
  );
  return server;
}

function resultOf(output: Record<string, unknown>) {
  const content = [{ type: 'text' as const, text: JSON.stringify(output) }];
  return { content, structuredContent: output };
}

const handleMcp = toNodeHandler(createMcpHandler(toolServer));
// Web pages that the user visits must not call tools on this machine.
const isHostAllowed = localhostHostValidation();
const isOriginAllowed = localhostOriginValidation();

const http = createServer((request, response) => {
  if (!isHostAllowed(request, response) || !isOriginAllowed(request, response)) return;
  if (request.url !== '/mcp') {
    response.writeHead(404).end();
    return;
  }
  // The package's type of a request does not match Node's under exactOptionalPropertyTypes.
  void handleMcp(request as NodeIncomingMessageLike, response);
});

http.listen(Number(process.env['PORT'] ?? 8090), '127.0.0.1', () => {
  const { port } = http.address() as AddressInfo;
  process.stdout.write(`MCP tool server ready: http://127.0.0.1:${port}/mcp\n`);
});
