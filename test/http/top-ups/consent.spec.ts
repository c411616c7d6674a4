/** What an owner lets be taken from the saved card, agreed to in the console: by the owner alone, and recorded. */
import assert from 'node:assert/strict';
import { CONSENT_TERMS } from '../../../src/domain/consent-terms.ts';
import { CardsReply } from '../../../src/schemas/cards.ts';
import { ConsentReply } from '../../../src/schemas/consent.ts';
import { TopUpReply } from '../../../src/schemas/top-ups.ts';
import { createAccount, type TestAccount } from '../../support/accounts.ts';
import { assertError, bodyOf, call, charge } from '../../support/http.ts';
import { askForTopUp } from '../../support/payments.ts';
import { signIn } from '../../support/sessions.ts';
import { startStack, until, type Stack } from '../../support/stack.ts';
import { Client } from 'pg';

const TERMS = { termsVersion: CONSENT_TERMS.version };
/** Not amounts, or not amounts that a month can have. */
const REFUSED = [0, -1, 0.0000001, 1_000_000, 'much', '', null, true, [5], {}, '9'.repeat(1_000)];

describe('consent to payments from the saved card', () => {
  let stack: Stack;
  let sql: Client;
  let account: TestAccount;
  let headers: { cookie: string; origin: string };

  before(async () => {
    stack = await startStack({ env: { DEFAULT_CONSENT_CEILING: undefined } });
    sql = new Client({ connectionString: stack.database.url });
    await sql.connect();
  });
  beforeEach(async () => {
    account = await createAccount(stack.env, 0);
    const cookie = await signIn(stack.api, stack.database.url, account.email);
    headers = { cookie, origin: stack.api.url };
    await sql.query('update farebox.accounts set consent_ceiling_micros = null');
  });
  after(async () => {
    await sql?.end();
    await stack?.stop();
  });

  const get = (path: string) => call(stack.api, 'GET', path, { headers });
  const post = (path: string, body: object = {}) =>
    call(stack.api, 'POST', path, { headers, body });
  const consent = async () => bodyOf(await get('/v1/consent'), 200, ConsentReply);
  const topUp = (amount: number) =>
    askForTopUp(stack.api, '/v1/top-up', { headers, body: { amount } });
  const recorded = async () => {
    const { rows } = await sql.query<{ ceiling: string | null; terms: string | null }>(
      `select c.ceiling_micros as ceiling, c.terms, c.given_by from farebox.consents c
       join farebox.accounts a on a.id = c.account_id where a.email = $1 order by c.id`,
      [account.email],
    );
    return rows;
  };

  it('is absent at first, and then nothing is taken', async () => {
    const { ceiling, agreedAt, autoTopUp, terms } = await consent();
    assert.deepEqual([ceiling, agreedAt, autoTopUp], [null, null, null]);
    const saved = bodyOf(await get('/v1/cards'), 200, CardsReply);
    assert.deepEqual(saved, { state: 'known', cards: [] });
    assert.equal(terms.text, CONSENT_TERMS.text);
    assertError(await topUp(10), 403, 'consent_required', undefined, {
      topUpUrl: `${stack.api.url}/top-up`,
    });
  });

  it('keeps what its owner agreed to: nobody changes or deletes it, not even in the database', async () => {
    bodyOf(await post('/v1/consent', { ceiling: 30, ...TERMS }), 200, ConsentReply);
    const kept = await recorded();
    for (const statement of [
      `update farebox.consents set terms = 'others'`,
      'delete from farebox.consents',
      'truncate farebox.consents',
    ]) {
      await assert.rejects(sql.query(statement), /farebox\.consents is append-only/, statement);
    }
    assert.deepEqual(await recorded(), kept);
    assert.equal(kept[0]?.terms, CONSENT_TERMS.text);
  });

  it('lets top-ups take up to the ceiling of the month, and counts what they took', async () => {
    bodyOf(await post('/v1/consent', { ceiling: 30, ...TERMS }), 200, ConsentReply);
    assert.equal(bodyOf(await topUp(20), 201, TopUpReply).balance, 20);
    assert.equal((await consent()).taken, 20);
    assertError(await topUp(20), 403, 'consent_ceiling_reached', undefined, {
      left: 10,
      topUpUrl: `${stack.api.url}/top-up`,
    });
    const { cards } = bodyOf(await get('/v1/cards'), 200, CardsReply);
    assert.deepEqual(
      cards.map(({ brand, lastFour, isCharged }) => [brand, lastFour, isCharged]),
      [['visa', '4242', true]],
    );
    assert.match(cards[0]?.expiresOn ?? '', /^20\d\d-\d\d$/);
  });

  it('is recorded with the terms that were shown, each change and the withdrawal', async () => {
    await post('/v1/consent', { ceiling: 30, ...TERMS });
    await post('/v1/consent', { ceiling: '45.50', ...TERMS });
    const withdrawn = bodyOf(await post('/v1/consent/withdraw'), 200, ConsentReply);
    assert.equal(withdrawn.ceiling, null);
    assert.ok(Date.parse(withdrawn.agreedAt ?? '') > Date.now() - 60_000);
    const owner = { given_by: 'owner' };
    assert.deepEqual(await recorded(), [
      { ceiling: '30000000', terms: CONSENT_TERMS.text, ...owner },
      { ceiling: '45500000', terms: CONSENT_TERMS.text, ...owner },
      { ceiling: null, terms: null, ...owner },
    ]);
    assertError(await topUp(10), 403, 'consent_required', undefined, {
      topUpUrl: `${stack.api.url}/top-up`,
    });
  });

  it('has not changed after an answer that says so', async () => {
    await post('/v1/consent', { ceiling: 30, ...TERMS });
    await post('/v1/auto-top-up', { threshold: 5, amount: 10, ceiling: 20 });
    const before = [await consent(), await recorded()];
    await sql.query('begin');
    // Which only the reply needs.
    await sql.query('lock table farebox.top_ups in access exclusive mode');
    // One after the other: a third would wait for the share of the account as well, and be told so.
    const answers = [
      await post('/v1/consent', { ceiling: 50, ...TERMS }),
      await post('/v1/consent/withdraw'),
      await post('/v1/auto-top-up/off'),
    ];
    await sql.query('rollback');
    for (const answer of answers) assertError(answer, 503, 'service_unavailable');
    assert.deepEqual([await consent(), await recorded()], before);
  });

  it('accepts the current terms only, and only amounts', async () => {
    const old = await post('/v1/consent', { ceiling: 30, termsVersion: '2020-01-01' });
    assertError(old, 400, 'invalid_request', 'termsVersion');
    assertError(await post('/v1/consent', { ceiling: 30 }), 400, 'invalid_request', 'termsVersion');
    for (const ceiling of REFUSED) {
      const answer = await post('/v1/consent', { ceiling, ...TERMS });
      assert.equal(answer.status, 400, JSON.stringify(ceiling).slice(0, 50));
    }
    assert.deepEqual(await recorded(), []);
  });

  it('is asked for before automatic top-ups, which then come with the charge that leaves too little', async () => {
    const settings = { threshold: 5, amount: 10, ceiling: 20 };
    assertError(await post('/v1/auto-top-up', settings), 403, 'consent_required');
    await post('/v1/consent', { ceiling: 100, ...TERMS });
    const set = bodyOf(await post('/v1/auto-top-up', settings), 200, ConsentReply);
    assert.deepEqual(set.autoTopUp, { status: 'on', reason: null, ...settings });
    assert.equal((await charge(stack.api, account, { amount: 1 })).status, 402);
    await until(async () => (await consent()).taken === 10);
    const off = bodyOf(await post('/v1/auto-top-up/off'), 200, ConsentReply);
    assert.equal(off.autoTopUp, null);
  });

  it('is shown, without cards, when the processor does not know the customer', async () => {
    const { rows } = await sql.query<{ id: string }>(
      `update farebox.accounts set processor_customer_id = 'cus_not_there' where email = $1 returning id`,
      [account.email],
    );
    assert.equal(rows.length, 1);
    const saved = bodyOf(await get('/v1/cards'), 200, CardsReply);
    assert.deepEqual(saved, { state: 'known', cards: [] });
    assert.equal((await consent()).ceiling, null);
  });

  it('takes no automatic top-up that could never be made', async () => {
    await post('/v1/consent', { ceiling: 100, ...TERMS });
    const good = { threshold: 5, amount: 10, ceiling: 20 };
    for (const name of ['threshold', 'amount', 'ceiling']) {
      for (const value of REFUSED) {
        const answer = await post('/v1/auto-top-up', { ...good, [name]: value });
        assert.equal(answer.status, 400, `${name} ${JSON.stringify(value).slice(0, 50)}`);
      }
    }
    const answer = await post('/v1/auto-top-up', { ...good, amount: 30 });
    assertError(answer, 400, 'invalid_amount', 'ceiling');
    assert.equal((await consent()).autoTopUp, null);
  });
});
