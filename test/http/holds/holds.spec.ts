/** Holds over HTTP: placing, capturing, releasing and extending, each answer by its status. */
import assert from 'node:assert/strict';
import { DAY_MS, MINUTE_MS } from '../../../src/domain/durations.ts';
import { BalanceReply, UsageReply } from '../../../src/schemas/balance.ts';
import {
  CaptureReply,
  HoldReply,
  HoldsReply,
  PlacedHoldReply,
} from '../../../src/schemas/holds.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { openTestApi } from '../../support/api.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';
import {
  askCapture,
  askExtension,
  askHold,
  askRelease,
  capture,
  extend,
  keyed,
  place,
  release,
  show,
} from '../../support/hold-requests.ts';
import { assertLinkFor } from '../../support/top-up-links.ts';

const NOTHING = `hld_${'0'.repeat(32)}`;

/** No worker runs: holds need none, and an overdue one stays reserved until a worker sweeps. */
describe('holds', () => {
  const api = openTestApi({ servers: 2 });
  let account: TestAccount;

  beforeEach(async () => {
    account = await api.createAccount(10);
  });

  const balance = async () =>
    bodyOf(await call(api, 'GET', '/v1/balance', { key: account.consumerKey }), 200, BalanceReply)
      .balance;
  /** As if that much time had passed since the hold was placed. */
  const age = (id: string, ms: number) =>
    api.sql.query(
      `with aged as (
         update farebox.holds set placed_at = placed_at - $2 * interval '1 ms',
           expires_at = expires_at - $2 * interval '1 ms'
         where id = $1 returning id
       )
       update farebox.hold_expiries set due_at = due_at - $2 * interval '1 ms'
       where holds @> array(select id from aged)`,
      [id.slice('hld_'.length), ms],
    );

  describe('POST /v1/holds', () => {
    it('takes amounts as decimal strings, here and in a capture', async () => {
      const { id, amount } = await place(api, account, { amount: '0.210001' });
      assert.equal(amount, 0.210001);
      const captured = await capture(api, account, id, { amount: '0.000001', final: false });
      assert.deepEqual([captured.amount, captured.hold.remaining], [0.000001, 0.21]);
      for (const wrong of ['0.0000001', '1e-2', '-1', 'NaN', ' 1', '']) {
        await api.changingNothing(async () => {
          assertError(
            await askHold(api, account, { amount: wrong }),
            400,
            'invalid_amount',
            'amount',
          );
          assertError(
            await askCapture(api, account, id, { amount: wrong }),
            400,
            'invalid_amount',
            'amount',
          );
        });
      }
    });

    it('reserves the amount, so that nothing else can spend it', async () => {
      const hold = await place(api, account, { amount: 4 });
      const { id, createdAt, expiresAt, ...rest } = hold;
      assert.match(id, /^hld_[0-9a-f]{32}$/);
      assert.deepEqual(rest, {
        tool: 'search',
        amount: 4,
        captured: 0,
        remaining: 4,
        status: 'open',
        consumerId: account.consumerId,
        developerId: account.developerId,
        balance: 6,
      });
      assert.equal(lifetimeMs({ createdAt, expiresAt }), 10 * MINUTE_MS);
      assert.ok(Math.abs(Date.parse(createdAt) - Date.now()) < MINUTE_MS);
      assert.equal(await balance(), 6);
      const refused = await call(api, 'POST', '/v1/charges', {
        key: account.developerKey,
        body: { apiKey: account.consumerKey, tool: 'search', amount: 6.000001 },
      });
      assert.equal(refused.status, 402);
    });

    it('expires after the requested number of seconds', async () => {
      assert.equal(lifetimeMs(await place(api, account, { expiresIn: 1 })), 1_000);
      assert.equal(lifetimeMs(await place(api, account, { expiresIn: 86_400 })), DAY_MS);
    });

    for (const expiresIn of [0, -1, 86_401, 1.5, '600', null]) {
      it(`refuses ${JSON.stringify(expiresIn)} as expiresIn`, async () => {
        await api.changingNothing(async () => {
          const answer = await askHold(api, account, { expiresIn });
          assertError(answer, 400, 'invalid_request', 'expiresIn');
        });
      });
    }

    it('reserves the price of the tool when no amount is given', async () => {
      const body = { name: 'priced', description: '', price: 0.25 };
      await call(api, 'POST', '/v1/tools', { key: account.developerKey, body });
      const hold = await place(api, account, { tool: 'priced', amount: undefined });
      assert.equal(hold.amount, 0.25);
    });

    it('refuses the same requests as a charge', async () => {
      await release(api, account, (await place(api, account)).id);
      await api.changingNothing(async () => {
        assertError(await askHold(api, account, { apiKey: 'x' }), 401, 'invalid_api_key', 'apiKey');
        assertError(await askHold(api, account, { amount: 0 }), 400, 'invalid_amount', 'amount');
        const unknown = await askHold(api, account, { tool: 'none', amount: undefined });
        assertError(unknown, 400, 'unknown_tool', 'tool');
        const short = await askHold(api, account, { amount: 10.5 });
        assertError(short, 402, 'insufficient_balance', undefined, {
          balance: 10,
          developerId: account.developerId,
          tool: 'search',
          required: 10.5,
          shortfall: 0.5,
          topUpUrl: `${new URL(api.url).origin}/top-up`,
        });
        await assertLinkFor(api, short, account);
      });
      assert.equal(await balance(), 10);
    });

    it('is placed once for an Idempotency-Key, on every server', async () => {
      const first = await askHold(api, account, {}, keyed('once'));
      assert.equal(first.headers.get('idempotency-replayed'), null);
      const body = bodyOf(first, 201, PlacedHoldReply);
      await place(api, account);
      for (const server of api.servers) {
        const again = await askHold(server, account, {}, keyed('once'));
        assert.deepEqual(bodyOf(again, 201, PlacedHoldReply), body);
        assert.equal(again.headers.get('idempotency-replayed'), 'true');
      }
      assert.equal(await balance(), 8);
      for (const changes of [{ amount: 2 }, { tool: 'read' }, { expiresIn: 5 }]) {
        const answer = await askHold(api, account, changes, keyed('once'));
        assertError(answer, 422, 'idempotency_key_reused');
      }
    });

    it('returns the hold in its current state when the key is sent again', async () => {
      const { id } = bodyOf(await askHold(api, account, {}, keyed('k')), 201, PlacedHoldReply);
      await capture(api, account, id, { amount: 0.25 });
      const again = bodyOf(await askHold(api, account, {}, keyed('k')), 201, PlacedHoldReply);
      assert.deepEqual(
        [again.id, again.status, again.captured, again.remaining, again.balance],
        [id, 'captured', 0.25, 0, 9],
      );
    });

    it('has its own idempotency keys: a charge may use the same one', async () => {
      const { id } = bodyOf(await askHold(api, account, {}, keyed('same')), 201, PlacedHoldReply);
      const charge = await call(api, 'POST', '/v1/charges', {
        key: account.developerKey,
        body: { apiKey: account.consumerKey, tool: 'search', amount: 1 },
        headers: keyed('same'),
      });
      assert.equal(charge.status, 201);
      assert.equal((await askCapture(api, account, id, {}, keyed('same'))).status, 201);
      assert.equal(await balance(), 8);
    });

    it('reserves no more than the balance, under concurrent requests', async () => {
      const answers = await Promise.all(
        Array.from({ length: 40 }, (_, n) =>
          askHold(api.servers[n % 2] ?? api, account, { amount: 0.4 }),
        ),
      );
      assert.equal(answers.filter(({ status }) => status === 201).length, 25);
      assert.equal(answers.filter(({ status }) => status === 402).length, 15);
      assert.equal(await balance(), 0);
    });
  });

  describe('POST /v1/holds/:id/capture', () => {
    it('charges everything that is left when no amount is given', async () => {
      const { id } = await place(api, account, { amount: 3, metadata: { of: 'the hold' } });
      const answer = await capture(api, account, id, { metadata: { of: 'the charge' } });
      assert.deepEqual(
        [answer.amount, answer.balance, answer.tool, answer.holdId, answer.consumerId],
        [3, 7, 'search', id, account.consumerId],
      );
      assert.deepEqual(
        [answer.hold.status, answer.hold.captured, answer.hold.remaining],
        ['captured', 3, 0],
      );
      assert.equal(await balance(), 7);
    });

    it('charges a part and releases the rest', async () => {
      const { id } = await place(api, account, { amount: 3 });
      const { amount, balance: after, hold } = await capture(api, account, id, { amount: 0.75 });
      assert.deepEqual([amount, after, hold.captured, hold.status], [0.75, 9.25, 0.75, 'captured']);
      assert.equal(await balance(), 9.25);
    });

    it('leaves the rest reserved when it is not final', async () => {
      const { id } = await place(api, account, { amount: 3 });
      const part = await capture(api, account, id, { amount: 1, final: false });
      assert.deepEqual([part.balance, part.hold.remaining, part.hold.status], [7, 2, 'open']);
      const next = await capture(api, account, id, { amount: 0.5, final: false });
      assert.deepEqual([next.hold.captured, next.hold.remaining], [1.5, 1.5]);
      const last = await capture(api, account, id, { final: false });
      assert.deepEqual([last.amount, last.hold.captured, last.hold.status], [1.5, 3, 'captured']);
      assert.equal(await balance(), 7);
    });

    it('refuses more than is left, says how much that is, and leaves the hold unchanged', async () => {
      const { id } = await place(api, account, { amount: 1 });
      await capture(api, account, id, { amount: 0.25, final: false });
      await api.changingNothing(async () => {
        const answer = await askCapture(api, account, id, { amount: 0.750001 });
        assertError(answer, 402, 'exceeds_hold', 'amount', { remaining: 0.75 });
      });
      assert.equal((await show(api, account, id)).remaining, 0.75);
    });

    it('charges no more than is left when told to cap', async () => {
      const { id } = await place(api, account, { amount: 1 });
      const { amount, hold } = await capture(api, account, id, { amount: 5, over: 'cap' });
      assert.deepEqual([amount, hold.captured, hold.status], [1, 1, 'captured']);
      assert.equal(await balance(), 9);
    });

    it('takes the excess from the balance when told to overflow', async () => {
      const { id } = await place(api, account, { amount: 1 });
      const {
        amount,
        balance: after,
        hold,
      } = await capture(api, account, id, {
        amount: 5,
        over: 'overflow',
      });
      assert.deepEqual([amount, after, hold.captured, hold.status], [5, 5, 5, 'captured']);
      assert.equal(await balance(), 5);
    });

    it('refuses an excess that the balance does not cover, and leaves the hold unchanged', async () => {
      const { id } = await place(api, account, { amount: 9 });
      await api.changingNothing(async () => {
        const answer = await askCapture(api, account, id, { amount: 11, over: 'overflow' });
        assertError(answer, 402, 'insufficient_balance', undefined, {
          balance: 1,
          required: 2,
          shortfall: 1,
          topUpUrl: `${new URL(api.url).origin}/top-up`,
        });
        await assertLinkFor(api, answer, account);
      });
      assert.equal((await show(api, account, id)).status, 'open');
    });

    it('loses to a release, an earlier capture and the expiry', async () => {
      const [released, captured, late] = [
        await place(api, account),
        await place(api, account),
        await place(api, account),
      ];
      await release(api, account, released.id);
      await capture(api, account, captured.id);
      await age(late.id, 11 * MINUTE_MS);
      await api.changingNothing(async () => {
        for (const [{ id }, status] of [
          [released, 'released'],
          [captured, 'captured'],
          [late, 'expired'],
        ] as const) {
          assertError(await askCapture(api, account, id), 409, 'hold_closed', undefined, {
            status,
          });
        }
      });
      const { status, remaining } = await show(api, account, late.id);
      assert.deepEqual([status, remaining], ['expired', 0]);
    });

    it('is made once for an Idempotency-Key, on every server, and names one hold', async () => {
      const [one, other] = [await place(api, account), await place(api, account)];
      const body = { amount: 0.5, final: false };
      const first = await askCapture(api, account, one.id, body, keyed('c'));
      for (const server of api.servers) {
        const again = await askCapture(server, account, one.id, body, keyed('c'));
        assert.equal(again.headers.get('idempotency-replayed'), 'true');
        assert.deepEqual(bodyOf(again, 201, CaptureReply), bodyOf(first, 201, CaptureReply));
      }
      for (const changes of [{ amount: 0.25 }, { final: true }, { over: 'cap' }]) {
        const answer = await askCapture(api, account, one.id, { ...body, ...changes }, keyed('c'));
        assertError(answer, 422, 'idempotency_key_reused');
      }
      const onOther = await askCapture(api, account, other.id, body, keyed('c'));
      assert.equal(onOther.headers.get('idempotency-replayed'), null);
      await release(api, account, one.id);
      const late = await askCapture(api, account, one.id, body, keyed('c'));
      assert.equal(bodyOf(late, 201, CaptureReply).hold.status, 'released');
    });

    for (const [what, body, code, param] of [
      ['no amount at all', { amount: 0 }, 'invalid_amount', 'amount'],
      ['a negative amount', { amount: -1 }, 'invalid_amount', 'amount'],
      ['a fraction of a micro-dollar', { amount: 1e-7 }, 'invalid_amount', 'amount'],
      ['an amount in words', { amount: 'one' }, 'invalid_amount', 'amount'],
      ['more than a charge may be', { amount: 1_000_001, over: 'cap' }, 'invalid_amount', 'amount'],
      ['an unknown mode', { over: 'most' }, 'invalid_request', 'over'],
      ['final as text', { final: 'yes' }, 'invalid_request', 'final'],
    ] as const) {
      it(`refuses ${what}`, async () => {
        const { id } = await place(api, account);
        await api.changingNothing(async () => {
          assertError(await askCapture(api, account, id, body), 400, code, param);
        });
      });
    }
  });

  describe('POST /v1/holds/:id/release', () => {
    it('releases everything, and gives the same answer when repeated', async () => {
      const { id } = await place(api, account, { amount: 4 });
      const first = await release(api, account, id);
      assert.deepEqual([first.status, first.captured, first.remaining], ['released', 0, 0]);
      assert.deepEqual(await release(api, account, id), first);
      assert.equal(await balance(), 10);
    });

    it('releases what no capture took', async () => {
      const { id } = await place(api, account, { amount: 4 });
      await capture(api, account, id, { amount: 1, final: false });
      const { status, captured } = await release(api, account, id);
      assert.deepEqual([status, captured], ['released', 1]);
      assert.equal(await balance(), 9);
    });

    it('refuses a hold that was captured or has expired', async () => {
      const [captured, late] = [await place(api, account), await place(api, account)];
      await capture(api, account, captured.id);
      await age(late.id, 11 * MINUTE_MS);
      for (const [{ id }, status] of [
        [captured, 'captured'],
        [late, 'expired'],
      ] as const) {
        assertError(await askRelease(api, account, id), 409, 'hold_closed', undefined, { status });
      }
    });
  });

  describe('POST /v1/holds/:id/extend', () => {
    it('counts from now, and never brings the expiry forward', async () => {
      const hold = await place(api, account);
      const longer = await extend(api, account, hold.id, 3_600);
      assert.ok(Math.abs(Date.parse(longer.expiresAt) - Date.now() - 60 * MINUTE_MS) < MINUTE_MS);
      assert.equal((await extend(api, account, hold.id, 60)).expiresAt, longer.expiresAt);
    });

    it('ends 24 hours after the hold was placed', async () => {
      const hold = await place(api, account, { expiresIn: 86_400 });
      await age(hold.id, DAY_MS / 2);
      const { createdAt, expiresAt } = await extend(api, account, hold.id, 86_400);
      assert.equal(lifetimeMs({ createdAt, expiresAt }), DAY_MS);
    });

    it('refuses a hold that is closed', async () => {
      const { id } = await place(api, account);
      await release(api, account, id);
      const answer = await askExtension(api, account, id, 60);
      assertError(answer, 409, 'hold_closed', undefined, { status: 'released' });
    });

    it('happens once for an Idempotency-Key', async () => {
      const { id } = await place(api, account, { expiresIn: 60 });
      const { expiresAt } = await extend(api, account, id, 120, keyed('e'));
      // Without the key, this would count from a later now.
      await extend(api, account, id, 60);
      const again = await askExtension(api, account, id, 120, keyed('e'));
      assert.equal(again.headers.get('idempotency-replayed'), 'true');
      assert.equal(bodyOf(again, 200, HoldReply).expiresAt, expiresAt);
      const other = await askExtension(api, account, id, 240, keyed('e'));
      assertError(other, 422, 'idempotency_key_reused');
    });

    for (const expiresIn of [0, 86_401, 1.5, '60', undefined]) {
      it(`refuses ${JSON.stringify(expiresIn)} as expiresIn`, async () => {
        const { id } = await place(api, account);
        const answer = await askExtension(api, account, id, expiresIn);
        assertError(answer, 400, 'invalid_request', 'expiresIn');
      });
    }
  });

  it('are listed by state, page by page, for their developer and their consumer', async () => {
    const ids: string[] = [];
    for (let n = 0; n < 3; n += 1) {
      ids.unshift((await place(api, account, { metadata: { n } })).id);
    }
    await release(api, account, ids[1] ?? '');
    const list = async (key: string, query: string) =>
      bodyOf(await call(api, 'GET', `/v1/holds?${query}`, { key }), 200, HoldsReply);
    const first = await list(account.developerKey, 'limit=2');
    assert.deepEqual(
      first.holds.map(({ id, status, metadata }) => [id, status, metadata]),
      [
        [ids[0], 'open', { n: 2 }],
        [ids[1], 'released', { n: 1 }],
      ],
    );
    const second = await list(account.consumerKey, `limit=2&cursor=${first.nextCursor}`);
    assert.deepEqual(
      second.holds.map(({ id, metadata }) => [id, metadata]),
      [[ids[2], undefined]],
    );
    assert.equal(second.hasMore, false);
    const open = await list(account.consumerKey, 'status=open');
    assert.deepEqual(
      open.holds.map(({ id }) => id),
      [ids[0], ids[2]],
    );
  });

  it('are named by the charges that captured them, which can be refunded', async () => {
    const { id: holdId } = await place(api, account, { amount: 3 });
    const { id, receipt } = await capture(api, account, holdId, { amount: 2 });
    const { developerKey: key, consumerKey } = account;
    const { charges } = bodyOf(
      await call(api, 'GET', '/v1/usage', { key: consumerKey }),
      200,
      UsageReply,
    );
    assert.deepEqual(
      charges.map((charge) => [charge.id, charge.holdId, charge.receipt]),
      [[id, holdId, receipt]],
    );
    const refund = await call(api, 'POST', `/v1/charges/${id}/refund`, { key, body: {} });
    assert.equal(refund.status, 201);
    assert.equal(await balance(), 10);
  });

  it('belong to the developer who placed them', async () => {
    const { id } = await place(api, account);
    const stranger = await api.createAccount(10);
    await api.changingNothing(async () => {
      for (const hold of [id, NOTHING, 'hld_', 'x', `chg_${'0'.repeat(32)}`]) {
        assertError(await askCapture(api, stranger, hold), 404, 'hold_not_found');
        assertError(await askRelease(api, stranger, hold), 404, 'hold_not_found');
        assertError(await askExtension(api, stranger, hold, 60), 404, 'hold_not_found');
      }
    });
    assert.equal((await show(api, account, id)).status, 'open');
  });
});

function lifetimeMs({ createdAt, expiresAt }: { createdAt: string; expiresAt: string }): number {
  return Date.parse(expiresAt) - Date.parse(createdAt);
}
