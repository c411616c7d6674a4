/** The metrics count mails by outcome, so that an alert can notice a mail server that takes none. */
import assert from 'node:assert/strict';
import { startTestApi, type TestApi } from '../support/api.ts';
import { call } from '../support/http.ts';
import { startMailServer } from '../support/mail-server.ts';
import { choosePort } from '../support/ports.ts';
import { startApi, until } from '../support/stack.ts';

describe('the metrics of mails', () => {
  let api: TestApi;
  let mails: Awaited<ReturnType<typeof startMailServer>>;

  before(async () => {
    [api, mails] = await Promise.all([startTestApi(), startMailServer()]);
  });
  after(() => Promise.all([api?.stop(), mails?.stop()]));

  for (const [outcome, recipient, smtpUrl] of [
    ['sent', 'new@example.com', () => mails.urlFor('p@ss')],
    ['refused', 'new@refused.example', () => mails.urlFor('p@ss')],
    ['failed', 'other@example.com', () => mails.urlFor('an old password')],
    ['failed', 'third@example.com', async () => `smtp://127.0.0.1:${await choosePort()}`],
    ['not_configured', 'fourth@example.com', () => ''],
  ] as const) {
    it(`count a sign-up whose mail is ${outcome.replace('_', ' ')}: ${recipient}`, async () => {
      const port = await choosePort();
      const env = { ...api.env, METRICS_PORT: String(port), SMTP_URL: await smtpUrl() };
      const server = await startApi({ env });
      try {
        const before = await countsAt(port);
        const { status } = await call(server, 'POST', '/console/auth/sign-up', {
          body: { email: recipient },
          headers: { origin: server.url },
        });
        assert.equal(status, 200);
        const expected = { ...before, [outcome]: (before[outcome] ?? Number.NaN) + 1 };
        await until(async () => (await countsAt(port))[outcome] !== before[outcome]);
        assert.deepEqual(await countsAt(port), expected);
      } finally {
        await server.stop();
      }
    });
  }
});

async function countsAt(port: number): Promise<Record<string, number>> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return Object.fromEntries(
    [...text.matchAll(/^farebox_mails_total\{outcome="(\w+)"\} (\d+)$/gm)].map(
      ([, outcome, count]) => [outcome, Number(count)],
    ),
  );
}
