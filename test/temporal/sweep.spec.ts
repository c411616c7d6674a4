/** What a sweep resumes although a part of it fails. test/events and test/mail have what it resumes otherwise. */
import assert from 'node:assert/strict';
import { pino } from 'pino';
import { sql } from '../../src/store/database.ts';
import { postTest } from '../../src/store/events/deliveries.ts';
import { makeWebhookEndpoint } from '../../src/store/events/webhook-endpoints.ts';
import { takeNotices } from '../../src/store/outbox.ts';
import { sweep } from '../../src/temporal/sweep.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';
import { newPayer } from '../support/payer.ts';

describe('a sweep', () => {
  let ledger: TestLedger;

  before(async () => {
    ledger = await openTestLedger();
  });
  after(() => ledger?.drop());

  it('resumes the other kinds of work when one cannot be read', async () => {
    const { database } = ledger;
    const { accountId } = await newPayer(database);
    const settings = { url: 'https://example.com/events', types: null, description: '' };
    const made = await makeWebhookEndpoint(database, accountId, 1, settings);
    assert.ok('endpoint' in made);
    const { id } = made.endpoint;
    await postTest(database, { id, accountId }, {});
    await database.query(sql.typeAlias('nothing')`
      update farebox.webhook_deliveries set next_attempt_at = now() - interval '3 minutes'
    `);
    await database.query(sql.typeAlias('nothing')`delete from farebox.outbox`);
    await database.query(sql.typeAlias('nothing')`
      alter table farebox.invocations rename to unreadable
    `);
    const lines: string[] = [];
    await sweep(
      database,
      pino({ level: 'warn' }, { write: (line) => void lines.push(line) }),
      true,
    );
    const notices = await takeNotices(database, 10, 1_000);
    assert.deepEqual(
      notices.map(({ subjectId }) => subjectId),
      [id],
    );
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? '', /could not look for work to resume.*invocations/);
  });
});
