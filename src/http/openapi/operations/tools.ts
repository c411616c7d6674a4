/** The prose of the API reference for tools. */
import type { Operation } from '../operation.ts';

export const TOOL_OPERATIONS = {
  createTool: {
    tag: 'Earnings',
    summary: 'Register a tool',
    description:
      'Registers a tool under a name of your choice. Charges for a tool with a price need no amount.',
  },
  listTools: {
    tag: 'Earnings',
    summary: 'List your tools',
    description: 'Returns your tools in use, oldest first, each with its charges and revenue.',
  },
  getTool: {
    tag: 'Earnings',
    summary: 'Get a tool',
    description: 'Returns one tool, in use or archived.',
  },
  getRateCard: {
    tag: 'Earnings',
    summary: 'Get a rate card of a tool',
    description:
      'Returns the card with this version, as receipts name it, even if the tool has another one or none now.',
  },
  updateTool: {
    tag: 'Earnings',
    summary: 'Change or archive a tool',
    description: 'Changes the fields that you send. The name of a tool cannot be changed.',
  },
  quoteCharge: {
    tag: 'Charges',
    summary: 'Quote a charge',
    description:
      "Returns what a charge of the tool would take now: the cost of `units` by the tool's rate card or, without `units`, its " +
      'price. A charge that costs $0 is refused, but can be quoted. Takes and reserves nothing.',
  },
} as const satisfies Record<string, Operation>;
