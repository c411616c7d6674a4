/** The test side of an account, made directly in the database as `farebox key create --test` makes it. */
import { wireId } from '../../src/domain/ids.ts';
import { findAccount } from '../../src/store/accounts/accounts.ts';
import { createKey } from '../../src/store/accounts/api-keys.ts';
import { ensureTestAccount, type Holder } from '../../src/store/accounts/test-accounts.ts';
import { call } from './http.ts';
import { keptPool } from './kept-pools.ts';
import type { TestAccount } from './accounts.ts';

/** With test keys and ids; `holder` has the UUIDs. It has no address and no legacy key. */
export type TestSide = TestAccount & { readonly holder: Holder };

export async function testSideOf(
  api: { readonly url: string },
  databaseUrl: string,
  { email }: TestAccount,
  balanceDollars = 0,
): Promise<TestSide> {
  const database = await keptPool(databaseUrl);
  const live = await findAccount(database, { email });
  if (!live) throw new Error(`there is no account ${email}`);
  const holder = await ensureTestAccount(database, live.id, 16);
  const { key: consumerKey } = await createKey(database, 'fare', 'consumer', holder);
  const { key: developerKey } = await createKey(database, 'fare', 'developer', holder);
  const { body } = await call(api, 'GET', '/v1/developer', { key: developerKey });
  if (balanceDollars > 0) {
    await call(api, 'POST', '/v1/top-up', { key: consumerKey, body: { amount: balanceDollars } });
  }
  const { developerId } = body as { readonly developerId: string };
  const consumerId = wireId('consumer', holder.consumerId);
  return { email, consumerId, developerId, consumerKey, developerKey, legacyKey: '', holder };
}
