/**
 * The mail that asks the owner about a refused call, when the mail server does not know the owner or there is
 * no mail server.
 */
import assert from 'node:assert/strict';
import { ApplicationFailure } from '@temporalio/activity';
import { pino } from 'pino';
import { Type } from 'typebox';
import { createApprovalActivities } from '../../activities/approvals.ts';
import { ApprovalLinks } from '../../src/signing/approval-links.ts';
import { wireId } from '../../src/domain/ids.ts';
import { asMicros } from '../../src/domain/money.ts';
import { mailSender } from '../../src/mail/send.ts';
import { findApproval } from '../../src/store/approvals/approval.ts';
import { askApproval } from '../../src/store/approvals/ask-approval.ts';
import { row, sql } from '../../src/store/database.ts';
import { readMasterSecrets } from '../../src/read-setting.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';
import { startMailServer } from '../support/mail-server.ts';
import { newPayer } from '../support/payer.ts';

const developerRow = row(
  Type.Object({ developerId: Type.String(), developerNumber: Type.Integer() }),
);

describe('the mail about an approval', () => {
  let ledger: TestLedger;
  let server: Awaited<ReturnType<typeof startMailServer>>;

  before(async () => {
    [ledger, server] = await Promise.all([openTestLedger(1), startMailServer()]);
  });
  after(() => Promise.all([ledger?.drop(), server?.stop()]));

  it('is not tried again when there is no such recipient, and does not count as sent', async () => {
    const { database } = ledger;
    const id = await askFor('nobody@refused.example');
    // A step that throws is run again.
    assert.equal(
      await stepsVia(server.urlFor('p@ss')).mailApproval(wireId('approval', id)),
      'refused',
    );
    assert.equal((await findApproval(database, id))?.isMailed, false);
  });

  it('is retried less and less often while the worker has no mail server, because another worker may have one', async () => {
    const { database } = ledger;
    const approvalId = await askFor('owner@example.com');
    const id = wireId('approval', approvalId);
    let [attempts, hours] = [0, 0];
    while (hours < 7 * 24) {
      await database.query(sql.typeAlias('nothing')`
        update farebox.approvals set created_at = now() - make_interval(secs => ${hours * 3_600})
        where id = ${approvalId}
      `);
      const failed = await stepsVia(undefined)
        .mailApproval(id)
        .catch((error: unknown) => error);
      assert.ok(failed instanceof ApplicationFailure && failed.type === 'no_mail_server');
      const pauseMs = Number(failed.nextRetryDelay);
      assert.ok(pauseMs >= 3_600_000 && pauseMs <= 86_400_000, `${pauseMs}`);
      attempts += 1;
      hours += pauseMs / 3_600_000;
    }
    assert.equal(attempts, 12);
    assert.equal(await stepsVia(server.urlFor('p@ss')).mailApproval(id), 'sent');
  });

  async function askFor(email: string): Promise<string> {
    const { database } = ledger;
    const { ledger: number, consumerId, accountId } = await newPayer(database);
    const developer = await database.one(sql.type(developerRow)`
      update farebox.accounts set email = ${email} where id = ${accountId}
      returning developer_id as "developerId", developer_number as "developerNumber"
    `);
    const asked = await askApproval(database, {
      ledger: number,
      consumerId,
      accountId,
      ...developer,
      spendKey: 0,
      tool: 'search',
      amountMicros: asMicros(4_000_000),
      code: 'insufficient_balance',
      budget: null,
      scope: null,
      limitMicros: null,
      askedBy: 'developer',
      reason: '',
      expiresInSeconds: 600,
    });
    assert.ok(asked.kind === 'asked');
    return asked.approval.id;
  }

  function stepsVia(smtpUrl: string | undefined) {
    const { database } = ledger;
    const secrets = readMasterSecrets({ MASTER_SECRET: 'a'.repeat(32) });
    const links = new ApprovalLinks(secrets, 'https://example.com');
    return createApprovalActivities({
      database,
      linkTo: (approval) => links.urlFor(approval),
      send: mailSender({
        config: { smtpUrl, from: 'billing@example.com', isKept: false },
        database,
        log: pino({ level: 'silent' }),
      }),
    });
  }
});
