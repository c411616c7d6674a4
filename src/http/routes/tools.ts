/** The rows of the table of routes for tools. */
import { Id } from '../../schemas/shapes.ts';
import {
  CardNumber,
  ChangedToolReply,
  RateCardReply,
  QuoteBody,
  QuoteReply,
  ToolBody,
  ToolChanges,
  ToolReply,
  ToolsQuery,
  ToolsReply,
} from '../../schemas/tools.ts';
import type { Endpoint } from '../endpoint.ts';
import { postQuote } from '../handlers/tools/quotes.ts';
import { getRateCard, getTool, getTools, patchTool, postTool } from '../handlers/tools/tools.ts';
import { get } from '../read-endpoints.ts';
import { patch, post } from '../write-endpoints.ts';

const toolParams = { id: Id('tool', 'The id of the tool.') };

export const TOOL_ENDPOINTS: readonly Endpoint[] = [
  post('/v1/tools', {
    operation: 'createTool',
    role: 'developer',
    body: ToolBody,
    replies: { 201: ToolReply },
    errors: ['invalid_amount', 'tool_exists', 'too_many_tools'],
    handle: postTool,
  }),
  get('/v1/tools', {
    operation: 'listTools',
    role: 'developer',
    query: ToolsQuery,
    replies: { 200: ToolsReply },
    handle: getTools,
  }),
  get('/v1/tools/:id', {
    operation: 'getTool',
    role: 'developer',
    params: toolParams,
    replies: { 200: ChangedToolReply },
    errors: ['not_found'],
    handle: getTool,
  }),
  get('/v1/tools/:id/cards/:version', {
    operation: 'getRateCard',
    role: 'developer',
    params: { ...toolParams, version: CardNumber },
    replies: { 200: RateCardReply },
    errors: ['not_found'],
    handle: getRateCard,
  }),
  patch('/v1/tools/:id', {
    operation: 'updateTool',
    role: 'developer',
    params: toolParams,
    body: ToolChanges,
    replies: { 200: ChangedToolReply },
    errors: ['invalid_amount', 'not_found', 'too_many_tools'],
    handle: patchTool,
  }),
  post('/v1/quote', {
    operation: 'quoteCharge',
    rate: 'none',
    role: 'developer',
    body: QuoteBody,
    replies: { 200: QuoteReply },
    errors: ['invalid_amount', 'unknown_tool', 'tool_archived'],
    reportsOutcome: true,
    handle: postQuote,
  }),
];
