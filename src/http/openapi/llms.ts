/**
 * `/llms.txt`: the guides, and the API on one page of Markdown, for language models. The API is derived from
 * the table of routes.
 */
import type { Endpoint } from '../endpoint.ts';
import { TAGS } from './operation.ts';
import { OPERATIONS } from './operations.ts';
import type { Role } from '../authenticate.ts';

const KEYS: Readonly<Record<Role | 'public', string>> = {
  consumer: 'consumer key',
  developer: 'secret key',
  either: 'consumer key or secret key',
  payer: 'consumer key or spend key',
  asker: 'consumer key, spend key or secret key',
  legacy: 'legacy key, in `X-Service-Key`',
  session: 'the console session',
  operator: 'the console session of an operator',
  public: 'no key',
};

const GUIDES = {
  quickstart: 'from nothing to a paid MCP tool',
  charging: 'amounts, prices, refusals, refunds, receipts',
  holds: 'reserve first, charge when the cost is known',
  receipts: 'verify a receipt without the client',
  money: 'the currency, the smallest amounts, rounding, and who takes which fee',
  consumers: 'for the owner of a balance: top up, hand out a spend key, see what it spent, leave',
  budgets: 'limits for an agent, a session or a colleague, and spend keys',
  approvals: 'ask the owner about a refused call',
  leases: 'charge without a request for each call',
  idempotency: 'retry without charging twice',
  'test-mode': 'play money, and refusals and outages on demand',
  webhooks: 'events, signed and retried',
  events: 'every type of event, with an example',
  stability: 'what can change under /v1, and what does not',
  python: 'a client generated from the OpenAPI document',
  'self-hosting': 'run Farebox in production',
  accounts: 'pay developers, export data, close an account',
  settings: 'every setting',
  limits: 'every limit, and what happens beyond it',
};

export function llmsText(endpoints: readonly Endpoint[]): string {
  const sections = Object.entries(TAGS).map(([tag, description]) => {
    const lines = endpoints
      .filter(({ operation }) => OPERATIONS[operation].tag === tag)
      .map(lineOf);
    return [`## ${tag}`, '', description, '', ...lines, ''].join('\n');
  });
  return [
    '# Farebox',
    '',
    '> Prepaid-balance billing for tool servers. A consumer holds a balance in dollars; a tool server charges it',
    '> per call, before the work is done, and gets a signed receipt.',
    '',
    'Send a key as `Authorization: Bearer <key>`. Send an `Idempotency-Key` to be able to retry.',
    '',
    '- [OpenAPI 3.1](/openapi.json): every parameter, body, response and error, with examples',
    '- [Error codes](/docs/errors.md): what each code means and what to do',
    '- [The client](/client/README.md): `@farebox/client`, with `paidTool` for MCP and `paidRoute` for web frameworks',
    ...Object.entries(GUIDES).map(
      ([name, subject]) => `- [${titleOf(name)}](/docs/${name}.md): ${subject}`,
    ),
    '',
    ...sections,
  ].join('\n');
}

function lineOf({ method, path, operation, role }: Endpoint): string {
  const { summary, description } = OPERATIONS[operation];
  return `- \`${method.toUpperCase()} ${path}\`: ${summary} (${KEYS[role]}). ${description}`;
}

function titleOf(name: string): string {
  return (name.charAt(0).toUpperCase() + name.slice(1)).replaceAll('-', ' ');
}
