/** The link in the error of a request that the balance does not cover. */
import assert from 'node:assert/strict';
import { uuidOf } from '../../src/domain/ids.ts';
import { TopUpLinks } from '../../src/signing/top-up-links.ts';
import { readMasterSecrets } from '../../src/read-setting.ts';
import type { TestAccount } from './accounts.ts';
import type { TestApi } from './api.ts';
import type { Answer } from './http.ts';

/** The link opens the page, and names this account as the one to pay for. */
export async function assertLinkFor(
  { env, url }: Pick<TestApi, 'env' | 'url'>,
  { body }: Answer,
  { consumerId }: TestAccount,
): Promise<void> {
  const { topUpUrl } = (body as { error: { topUpUrl: string } }).error;
  const links = new TopUpLinks(readMasterSecrets(env), url, { nowMs: Date.now });
  const link = links.read(new URL(topUpUrl).searchParams.get('link') ?? '');
  assert.equal(link?.consumerId, uuidOf('consumer', consumerId));
  assert.equal((await fetch(topUpUrl)).status, 200);
}
