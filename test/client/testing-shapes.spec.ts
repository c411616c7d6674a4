/**
 * The fake refuses values of the wrong type and unknown members as the service does: one suite, which both
 * must pass.
 */
import assert from 'node:assert/strict';
import type { Ground } from './grounds.ts';
import { fakeService, realService } from './grounds.ts';
import { raised } from './scripted-service.ts';

const ID = '0'.repeat(32);
const OTHER_TYPES = [null, 7, 'true', [], {}];

/** Calls with arguments that TypeScript would refuse. */
async function refuses(
  param: string | undefined,
  ask: (with_: never) => unknown,
  ...values: unknown[]
) {
  for (const value of values) {
    const error = await raised(Promise.resolve(ask(value as never)));
    assert.deepEqual([error.code, error.param], ['invalid_request', param], JSON.stringify(value));
  }
}

for (const [name, service] of Object.entries({ service: realService(), fake: fakeService() })) {
  describe(`client: what the ${name} refuses as malformed`, () => {
    let ground: Ground;

    before(async () => {
      await service.start();
      ground = await service.open();
    });
    after(() => service.stop());

    it('a capture and a tool with members of the wrong type', async () => {
      const { farebox, apiKey, consumer } = ground;
      const { id: holdId } = await farebox.holds.place({ apiKey, tool: 'search', amount: 2 });
      await refuses('final', (final) => farebox.holds.capture({ holdId, final }), ...OTHER_TYPES);
      await refuses('over', (over) => farebox.holds.capture({ holdId, over }), ...OTHER_TYPES);
      assert.equal((await farebox.holds.get(holdId)).status, 'open');
      assert.equal((await consumer.balance()).balance, 8);
      const { id } = await farebox.tools.create({ name: 'made' });
      await refuses(
        'archived',
        (archived) => farebox.tools.update(id, { archived }),
        ...OTHER_TYPES,
      );
      for (const description of [null, 7, [], {}, 'x'.repeat(2_001), '\0']) {
        await refuses(
          'description',
          (text) => farebox.tools.update(id, { description: text }),
          description,
        );
        await refuses(
          'description',
          (text) => farebox.tools.create({ name: 'made', description: text }),
          description,
        );
      }
    });

    it('a budget and a key with unknown members or members of the wrong type', async () => {
      const { budgets } = ground.consumer;
      const { id } = await budgets.create({ name: 'agent' });
      const wrong: [string, string, ...unknown[]][] = [
        ['limits', 'limits', 5],
        ['allowLeases', 'allowLeases', ...OTHER_TYPES],
        ['approveDevelopers', 'approveDevelopers', ...OTHER_TYPES],
        ['mayDelegate', 'mayDelegate', ...OTHER_TYPES],
        ['window', 'window', 0, '', { per: 'day', limit: 5, from: 'now' }],
        ['window', 'window.per', { limit: 5 }],
        ['window', 'window.limit', { per: 'day' }],
        ['tools', 'tools.0', [7], [null], [''], ['x'.repeat(138)]],
        ['developers', 'developers.1', [`dev_${ID}`, 'dev_1']],
        ['approvedDevelopers', 'approvedDevelopers', null, 7],
        ['approvedDevelopers', 'approvedDevelopers.0', ['dev_1']],
        ['expiresAt', 'expiresAt', '2099-01-01T00:00:00', 'Jan 1 2099', '2099-02-30', 7],
      ];
      for (const [member, param, ...values] of wrong) {
        const body = (value: unknown) => ({ [member]: value });
        await refuses(param, (value) => budgets.update(id, body(value)), ...values);
        await refuses(param, (value) => budgets.create({ name: 'b', ...body(value) }), ...values);
      }
      await refuses('parentId', (parentId) => budgets.create({ name: 'b', parentId }), 7, 'bdg_1');
      await refuses('expiresAt', (expiresAt) => budgets.createKey(id, { expiresAt }), null, 'soon');
      await refuses(
        'releaseHolds',
        (releaseHolds) => budgets.close(id, { releaseHolds }),
        ...OTHER_TYPES,
      );
      assert.partialDeepStrictEqual(await budgets.get(id), { status: 'active', window: null });
    });

    it('an approval request with an unknown member, and a filter with a value that does not exist', async () => {
      const { farebox, apiKey, consumer } = ground;
      const question = { apiKey, tool: 'search', amount: 20, because: 'of a typo' };
      await refuses('because', (asked) => farebox.approvals.ask(asked), question);
      await refuses(
        'consumerId',
        (consumerId) => farebox.charges.list({ consumerId }).page(),
        '',
        'cns_1',
      );
      await refuses('status', (status) => farebox.holds.list({ status }).page(), '', 'closed');
      await refuses('archived', (archived) => farebox.tools.list({ archived }).page(), 'yes');
      await refuses('parentId', (parentId) => consumer.budgets.list({ parentId }).page(), 'bdg_1');
      await refuses('status', (status) => consumer.approvals.list({ status }).page(), 'open');
      await refuses(
        'budgetId',
        (budgetId) => consumer.approvals.list({ budgetId }).page(),
        'bdg_1',
      );
      const times = ['2026-11-01T00:00:00', 'Nov 1 2026', '2026', '2026-02-30', '1'];
      await refuses('from', (from) => farebox.charges.list({ from }).page(), ...times);
      await refuses('to', (to) => farebox.earnings({ to }), ...times);
    });

    it('an approval request and a decision without a required member, and top-ups that no card can pay', async () => {
      const { farebox, apiKey, consumer } = ground;
      const { developerId } = await farebox.charge({ apiKey, tool: 'search', amount: 0.01 });
      const asked = { tool: 'search', amount: 20 };
      const byPayer = (more: never) => consumer.approvals.ask(Object.assign({ ...asked }, more));
      await refuses('developerId', byPayer, {});
      await refuses('apiKey', byPayer, { developerId, apiKey });
      const byDeveloper = (more: never) => farebox.approvals.ask(Object.assign({ ...asked }, more));
      await refuses('developerId', byDeveloper, { developerId, apiKey });
      const stranger = await raised(consumer.approvals.ask({ ...asked, developerId: `dev_${ID}` }));
      assert.deepEqual([stranger.code, stranger.param], ['not_found', 'developerId']);
      const unpriced = await raised(farebox.approvals.ask({ apiKey, tool: 'never charged' }));
      assert.deepEqual([unpriced.code, unpriced.param], ['invalid_amount', 'amount']);

      const { id: poor } = await farebox.approvals.ask({ apiKey, ...asked });
      const { balance } = await consumer.balance();
      for (const [amount, code] of [
        [0.4, 'invalid_amount'],
        [5.001, 'invalid_amount'],
        [402.01, 'card_declined'],
      ] as const) {
        const decided = consumer.approvals.decide(poor, { decision: 'top_up', amount });
        assert.equal((await raised(decided)).code, code);
      }
      assert.equal((await consumer.balance()).balance, balance);

      const { id } = await consumer.budgets.create({ name: 'small', limit: 1 });
      const { key } = await consumer.budgets.createKey(id);
      const { id: limited } = await farebox.approvals.ask({
        apiKey: key,
        tool: 'search',
        amount: 2,
      });
      await refuses(
        'limit',
        (limit) => consumer.approvals.decide(limited, { decision: 'raise', limit }),
        undefined,
      );
      const denied = { decision: 'deny' } as const;
      await refuses('limit', (limit) => consumer.approvals.decide(poor, { ...denied, limit }), 50);
      await refuses(
        'amount',
        (more) => consumer.approvals.decide(poor, { ...denied, amount: more }),
        50,
      );
      await refuses('developerId', byPayer, { developerId: 'dev_1' });
    });

    it('another answer than the one that was given, and pays for the same one once', async () => {
      const { farebox, consumer, apiKey } = await service.open();
      const call = { apiKey, tool: 'search', amount: 20 };
      const topUp = { decision: 'top_up', amount: 15 } as const;
      const { id } = await farebox.approvals.ask(call);
      const { decision } = await consumer.approvals.decide(id, topUp);
      assert.deepEqual([decision, (await consumer.balance()).balance], ['top_up', 25]);
      await consumer.approvals.decide(id, topUp);
      const late = await raised(consumer.approvals.decide(id, { decision: 'deny' }));
      assert.equal(late.code, 'approval_closed');
      const { id: other } = await farebox.approvals.ask({ ...call, amount: 30 });
      await consumer.approvals.decide(other, { decision: 'deny' });
      assert.equal((await raised(consumer.approvals.decide(other, topUp))).code, 'approval_closed');
      assert.equal((await consumer.balance()).balance, 25);

      const { id: budgetId } = await consumer.budgets.create({ name: 'small', limit: 1 });
      const { key } = await consumer.budgets.createKey(budgetId);
      const { id: limited } = await farebox.approvals.ask({ ...call, apiKey: key, amount: 2 });
      const raise = (limit: number) =>
        consumer.approvals.decide(limited, { decision: 'raise', limit });
      // Something else refuses the call first.
      await consumer.budgets.update(budgetId, { maxPerCall: 1.5 });
      assert.equal((await consumer.approvals.get(limited)).status, 'pending');
      await raise(5);
      await raise(5);
      assert.equal((await raised(raise(6))).code, 'approval_closed');
      assert.equal((await consumer.budgets.get(budgetId)).limit, 5);
    });

    it('a member of a batch, and runs the others', async () => {
      const { farebox, apiKey } = ground;
      const charge = { apiKey, tool: 'search', amount: 0.5 };
      const { id: holdId } = await farebox.holds.place(charge);
      const wrong = [
        ['op', { op: 'refund', chargeId: `chg_${ID}` }],
        ['op', { op: null }],
        ['holdId', { op: 'release', holdId: 7 }],
        ['holdId', { op: 'capture' }],
        ['over', { op: 'capture', holdId, over: 'all' }],
        ['final', { op: 'capture', holdId, final: 'no' }],
      ] as const;
      const members = [...wrong.map(([, member]) => member), charge];
      const results = await farebox.batch(members as never);
      const told = results.map(({ status, error }) => [
        status,
        error?.code,
        (error as { param?: string })?.param,
      ]);
      for (const { error } of results) if (error) assert.match(error.requestId, /^req_/);
      const [unknown] = await farebox.batch([{ op: 'release', holdId: 'hld_1' }]);
      assert.deepEqual([unknown?.status, unknown?.error?.code], [404, 'hold_not_found']);
      assert.deepEqual(told, [
        ...wrong.map(([param]) => [400, 'invalid_request', param]),
        [201, undefined, undefined],
      ]);
    });
  });
}
