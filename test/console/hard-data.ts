/** Data that breaks layouts which do not contain it: the longest names, in any script, and the largest amounts. */
import type { TestAccount } from '../support/accounts.ts';
import { makeBudget, makeKey } from '../support/budget-requests.ts';
import type { ConsoleHarness } from '../support/console.ts';
import { call, charge } from '../support/http.ts';

/** Names that break out of markup, lines and layouts that do not contain them. */
export const NASTY = [
  '<img src=x onerror="window.broken=1">',
  '</script><script>window.broken=1</script>',
  '🦊'.repeat(100),
  'a'.repeat(100),
  '{{constructor.constructor("window.broken=1")()}}',
  '=HYPERLINK("https://elsewhere.example")',
  '__proto__',
  'اختبار שלום',
];

const LONG = 'w'.repeat(100);

/** An account whose tools, keys, budgets and endpoints have such names, and the path of one of its tools. */
export async function useWithHardData(
  harness: ConsoleHarness,
): Promise<{ readonly account: TestAccount; readonly tool: string }> {
  const { api } = harness.stack;
  const account = await harness.newAccount(9_000_000);
  const { consumerKey, developerKey } = account;
  for (const tool of NASTY) await charge(api, account, { tool, amount: 876_543.210987 });
  const { body: tool } = await call(api, 'POST', '/v1/tools', {
    key: developerKey,
    body: { name: LONG, description: `${LONG} `.repeat(4), price: 0.000001 },
  });
  await charge(api, account, { tool: LONG, amount: undefined });
  const budget = await makeBudget(api, consumerKey, { name: LONG, limit: 1_234_567.890123 });
  await makeBudget(api, consumerKey, { name: '🦊'.repeat(50), limit: 0.000001 });
  const { key } = await makeKey(api, consumerKey, budget.id, { name: LONG });
  await charge(api, account, { apiKey: key, tool: LONG, amount: 999_999.999999 });
  await call(api, 'POST', '/v1/webhook-endpoints', {
    key: developerKey,
    body: { url: `https://example.com/${'path/'.repeat(60)}`, description: LONG },
  });
  return { account, tool: `/developer/tools/${(tool as { id: string }).id}` };
}
