/** The same paid tools for either generation of the MCP SDK, registered as its users would. */
import type { RequestListener } from 'node:http';
import type { Farebox, OnUnavailable } from '@farebox/client';
import { paidTool } from '@farebox/client/mcp';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { InMemoryTransport as InMemoryTransportV1 } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer as McpServerV1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  createMcpHandler,
  InMemoryTransport,
  McpServer,
  type Transport,
} from '@modelcontextprotocol/server';
import { z } from 'zod';

type AnyFarebox = Farebox<OnUnavailable>;

export interface Generation {
  /** Over HTTP, where each request has its own consumer. */
  readonly listen: (farebox: AnyFarebox) => RequestListener;
  /** Connects in memory, which is as stdio: there are no headers. Gives the client's end. */
  readonly connect: (farebox: AnyFarebox) => Promise<Transport>;
}

/** The result of a tool with an output schema. */
const counted = async () => ({ content: [], structuredContent: { count: 3 } });

/** A mistake, for a tool with an output schema. */
const empty = async () => ({ content: [] });

const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] });

/** Without an `await`: what a tool does that hangs. */
const never = () => new Promise<never>(() => {});

const broken = (): ReturnType<typeof text> => {
  throw new Error('the tool is broken');
};

/** A handler in JavaScript that forgets to return its result. */
const silent = () => undefined as unknown as ReturnType<typeof text>;

/** Results that no client would get. */
const word = () => 'otters' as unknown as ReturnType<typeof text>;
const big = () => ({ ...text('a lot'), structuredContent: { count: 3n } });

const endless = { max: 1, settle: never, timeoutMs: 50 };

const failed = () => ({ ...text('no'), isError: true });

/** The tools without a parameter, by name. */
const plainTools = (farebox: AnyFarebox) => ({
  now: paidTool(farebox, { tool: 'now', price: () => 0.25 }, async () => text('noon')),
  fails: paidTool(farebox, { tool: 'fails', price: 1 }, failed),
  throws: paidTool(farebox, { tool: 'throws', price: 1 }, broken),
  silent: paidTool(farebox, { tool: 'silent', price: 1 }, silent),
  waits: paidTool(farebox, { tool: 'waits', price: 1 }, never),
  late: paidTool(farebox, { tool: 'late', price: 1, timeoutMs: 50 }, never),
  endless: paidTool(farebox, { ...endless, tool: 'endless' }, () => text('noon')),
  word: paidTool(farebox, { tool: 'word', price: 1 }, word),
  big: paidTool(farebox, { tool: 'big', price: 1 }, big),
});

/** The tools with an output schema, by name. */
const countingTools = (farebox: AnyFarebox) => ({
  count: paidTool(farebox, { tool: 'count', price: 1, hasOutputSchema: true }, counted),
  empty: paidTool(farebox, { tool: 'empty', price: 1, hasOutputSchema: true }, empty),
});

function createV1(farebox: AnyFarebox): McpServerV1 {
  const server = new McpServerV1({ name: 'test', version: '1.0.0' });
  // The types of parameters come from the schema, through the SDK, so each generation registers these itself.
  const query = { inputSchema: { query: z.string() } };
  server.registerTool(
    'search',
    query,
    paidTool(farebox, { tool: 'search', price: '0.5' }, async ({ query }) => text(query)),
  );
  server.registerTool(
    'length',
    query,
    paidTool(
      farebox,
      { tool: 'length', max: 2, settle: ({ content }) => `0.0${content.length}` },
      ({ query }) => text(query),
    ),
  );
  server.registerTool(
    'letters',
    query,
    paidTool(
      farebox,
      { tool: 'letters', price: ({ query }) => query.length / 100 },
      async ({ query }) => text(query),
    ),
  );
  const output = { outputSchema: { count: z.number() } };
  for (const [name, tool] of Object.entries(plainTools(farebox)))
    server.registerTool(name, {}, tool);
  for (const [name, tool] of Object.entries(countingTools(farebox)))
    server.registerTool(name, output, tool);
  return server;
}

function createV2(farebox: AnyFarebox): McpServer {
  const server = new McpServer({ name: 'test', version: '1.0.0' });
  const query = { inputSchema: z.object({ query: z.string() }) };
  server.registerTool(
    'search',
    query,
    paidTool(farebox, { tool: 'search', price: '0.5' }, async ({ query }) => text(query)),
  );
  server.registerTool(
    'length',
    query,
    paidTool(farebox, { tool: 'length', max: 2, settle: () => '0.01' }, ({ query }) => text(query)),
  );
  server.registerTool(
    'letters',
    query,
    paidTool(
      farebox,
      { tool: 'letters', price: ({ query }) => query.length / 100 },
      async ({ query }) => text(query),
    ),
  );
  const output = { outputSchema: z.object({ count: z.number() }) };
  for (const [name, tool] of Object.entries(plainTools(farebox)))
    server.registerTool(name, {}, tool);
  for (const [name, tool] of Object.entries(countingTools(farebox)))
    server.registerTool(name, output, tool);
  return server;
}

export const GENERATIONS: Readonly<Record<string, Generation>> = {
  'version 1 of the SDK': {
    listen: (farebox) => (request, response) => {
      const transport = new StreamableHTTPServerTransport({});
      void createV1(farebox)
        .connect(transport)
        .then(() => transport.handleRequest(request, response));
    },
    connect: async (farebox) => {
      const [client, server] = InMemoryTransportV1.createLinkedPair();
      await createV1(farebox).connect(server);
      return client;
    },
  },
  'version 2 of the SDK': {
    listen: (farebox) =>
      toNodeHandler(createMcpHandler(() => createV2(farebox))) as RequestListener,
    connect: async (farebox) => {
      const [client, server] = InMemoryTransport.createLinkedPair();
      await createV2(farebox).connect(server);
      return client;
    },
  },
};
