/** Tools: registered once by name, priced or not, and listed with their revenue. */
import assert from 'node:assert/strict';
import { ChargeReply } from '../../../src/schemas/charges.ts';
import { ChangedToolReply, ToolReply, ToolsReply } from '../../../src/schemas/tools.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError, bodyOf, call, charge } from '../../support/http.ts';
import { holdAccount } from '../../support/row-locks.ts';
import { until } from '../../support/stack.ts';

describe('/v1/tools', () => {
  let api: TestApi;
  let account: TestAccount;

  before(async () => {
    api = await startTestApi({ servers: 2 });
  });
  beforeEach(async () => {
    account = await api.createAccount(100);
  });
  after(() => api.stop());

  const post = (body: unknown) =>
    call(api, 'POST', '/v1/tools', { key: account.developerKey, body });
  const register = async (body: unknown) => bodyOf(await post(body), 201, ToolReply);
  const list = async ({ developerKey } = account, query = '') =>
    bodyOf(await call(api, 'GET', `/v1/tools${query}`, { key: developerKey }), 200, ToolsReply)
      .tools;
  const patch = (id: string, body: unknown, { developerKey } = account) =>
    call(api, 'PATCH', `/v1/tools/${id}`, { key: developerKey, body });
  const change = async (id: string, body: unknown) =>
    bodyOf(await patch(id, body), 200, ChangedToolReply);
  /** By name alone, so at the tool's price; returns the charged amount, or the code of the refusal. */
  const priceAt = async (server: { readonly url: string }, tool: string) => {
    const { status, body } = await charge(server, account, { tool, amount: undefined });
    return status === 201
      ? (body as { amount: number }).amount
      : (body as { error: { code: string } }).error.code;
  };

  it('reports an unknown outcome when the database connection breaks during a registration', async () => {
    const tool = { name: 'search', description: 'Looks for otters' };
    await api.sql.query('begin');
    await api.sql.query('lock table farebox.tools in share row exclusive mode');
    const asked = post(tool);
    const backend = await until(api.waitingBackend);
    await api.sql.query('select pg_terminate_backend($1)', [backend]);
    assertError(await asked, 500, 'outcome_unknown');
    await api.sql.query('commit');
    await register(tool);
  });

  it('registers a tool and returns it', async () => {
    const { id, createdAt, ...rest } = await register({
      name: 'search',
      description: 'Looks for otters',
      price: 0.02,
    });
    assert.match(id, /^tool_[0-9a-f]{32}$/);
    assert.ok(Math.abs(Date.now() - Date.parse(createdAt)) < 60_000);
    assert.deepEqual(rest, { name: 'search', description: 'Looks for otters', price: 0.02 });
  });

  it('requires neither a description nor a price', async () => {
    const { description, price } = await register({ name: 'bare' });
    assert.deepEqual([description, price], ['', null]);
    assert.equal((await register({ name: 'unpriced', price: null })).price, null);
  });

  it('returns one tool by its id, and finds one by its name', async () => {
    const { id, ...rest } = await register({ name: 'search', description: 'Otters', price: 0.5 });
    await register({ name: 'search 2' });
    const read = (toolId: string, { developerKey } = account) =>
      call(api, 'GET', `/v1/tools/${toolId}`, { key: developerKey });
    const shown = bodyOf(await read(id), 200, ChangedToolReply);
    assert.deepEqual(shown, { id, ...rest, archived: false });
    assert.deepEqual(
      (await list(account, '?name=search')).map((tool) => tool.id),
      [id],
    );
    assert.deepEqual(await list(account, '?name=Search'), []);
    await change(id, { archived: true });
    assert.equal(bodyOf(await read(id), 200, ChangedToolReply).archived, true);
    assert.deepEqual(await list(account, '?name=search'), []);
    assert.equal((await list(account, '?name=search&archived=true'))[0]?.id, id);
    const stranger = await api.createAccount(1);
    assertError(await read(id, stranger), 404, 'not_found');
    assert.deepEqual(await list(stranger, '?name=search'), []);
    for (const none of ['search', 'tool_', `tool_${'0'.repeat(32)}`]) {
      assertError(await read(none), 404, 'not_found');
    }
  });

  it('refuses a registered name, and leaves that tool unchanged', async () => {
    const { id } = await register({ name: 'search', description: 'first', price: 1 });
    const before = await list();
    const again = { name: 'search', description: 'second', price: 2 };
    assertError(await api.changingNothing(() => post(again)), 409, 'tool_exists', undefined, {
      toolId: id,
    });
    assert.deepEqual(await list(), before);
  });

  it('registers a thousand tools for an account, archived ones included, and no more', async () => {
    await api.sql.query(
      `insert into farebox.tools (id, developer_id, name, registered_at, archived_at)
       select uuidv7(), replace($1, 'dev_', '')::uuid, 'tool ' || n, now(), case when n % 2 = 0 then now() end
       from generate_series(1, 999) n`,
      [account.developerId],
    );
    await register({ name: 'the last', price: 1 });
    await api.changingNothing(async () => {
      assertError(await post({ name: 'one more' }), 400, 'too_many_tools');
      assert.equal((await post({ name: 'the last' })).status, 409);
    });
    assert.equal((await charge(api, account, { tool: 'one more' })).status, 201);
    assertError(await post({ name: 'one more' }), 400, 'too_many_tools');
    const [charged] = await list(account, '?name=one%20more');
    await api.changingNothing(async () => {
      for (const body of [{ price: 1 }, { archived: true }, {}]) {
        assertError(await patch(charged?.id ?? '', body), 400, 'too_many_tools');
      }
    });
    await api.sql.query("delete from farebox.tools where name = 'tool 1'");
    assert.equal((await change(charged?.id ?? '', { price: 1 })).price, 1);
  });

  it('are charged by a new name while the row of the account is locked', async () => {
    const held = await holdAccount(api.databaseUrl, account.consumerId);
    try {
      bodyOf(await charge(api, account, { tool: 'new', amount: 0.01 }), 201, ChargeReply);
    } finally {
      await held.release();
    }
  });

  it('keeps both limits, on tools and on unregistered names, under concurrent requests', async () => {
    const fill = (count: number, registeredAt: string) =>
      api.sql.query(
        `insert into farebox.tools (id, developer_id, name, registered_at)
         select uuidv7(), replace($1, 'dev_', '')::uuid, 'tool ' || uuidv7(), ${registeredAt}
         from generate_series(1, $2) n`,
        [account.developerId, count],
      );
    await fill(998, 'now()');
    await fill(998, 'null');
    const statuses = await Promise.all(
      Array.from({ length: 8 }, async (_, n) => {
        const server = api.servers[n % 2] ?? api;
        const { developerKey: key } = account;
        const body = { name: `raced ${n}`, price: 1 };
        const { status } = await call(server, 'POST', '/v1/tools', { key, body });
        await charge(server, account, { tool: `new ${n}`, amount: 0.01 });
        return status;
      }),
    );
    assert.equal(statuses.filter((status) => status === 201).length, 2);
    const { rows } = await api.sql.query<{ registered: string; noted: string }>(
      `select count(registered_at) as registered, count(*) filter (where registered_at is null) as noted
       from farebox.tools where developer_id = replace($1, 'dev_', '')::uuid`,
      [account.developerId],
    );
    assert.deepEqual(rows, [{ registered: '1000', noted: '1000' }]);
  });

  it('lists page by page, oldest first', async () => {
    for (const name of ['a', 'b', 'c']) await register({ name });
    await charge(api, account, { tool: 'c', amount: 0.5 });
    const page = async (query: string) =>
      bodyOf(
        await call(api, 'GET', `/v1/tools?${query}`, { key: account.developerKey }),
        200,
        ToolsReply,
      );
    const first = await page('limit=2');
    assert.deepEqual([first.tools.map(({ name }) => name), first.hasMore], [['a', 'b'], true]);
    const last = await page(`limit=2&cursor=${first.nextCursor ?? ''}`);
    assert.deepEqual(
      last.tools.map(({ name, totalRevenue }) => [name, totalRevenue]),
      [['c', 0.5]],
    );
    assert.deepEqual([last.hasMore, last.nextCursor], [false, null]);
    for (const [query, code] of [
      ['limit=101', 'invalid_request'],
      ['cursor=tool_1', 'invalid_cursor'],
    ] as const) {
      const answer = await call(api, 'GET', `/v1/tools?${query}`, { key: account.developerKey });
      assertError(answer, 400, code, query.split('=')[0]);
    }
  });

  it('accepts the price as a decimal string, at registration and in a change', async () => {
    const { id, price } = await register({ name: 'by text', price: '0.10' });
    assert.equal(price, 0.1);
    assert.equal((await change(id, { price: '2.000001' })).price, 2.000001);
    assertError(await patch(id, { price: '2.0000001' }), 400, 'invalid_amount', 'price');
    assert.equal(await priceAt(api, 'by text'), 2.000001);
  });

  it('registers a name once, under concurrent requests', async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) => post({ name: 'raced', price: n + 1 })),
    );
    const [winner, ...more] = answers.filter(({ status }) => status === 201);
    assert.deepEqual([more.length, answers.filter(({ status }) => status === 409).length], [0, 7]);
    assert.ok(winner);
    assert.equal((await list())[0]?.price, bodyOf(winner, 201, ToolReply).price);
  });

  it('keeps the id of a name that was charged before its registration', async () => {
    await charge(api, account, { tool: 'eager', amount: 0.5 });
    const [noted] = await list();
    assert.deepEqual(noted, {
      id: noted?.id,
      name: 'eager',
      description: '',
      price: null,
      totalCharges: 1,
      totalRevenue: 0.5,
    });
    assert.equal((await register({ name: 'eager', price: 1 })).id, noted.id);
    assertError(await post({ name: 'eager' }), 409, 'tool_exists', undefined, { toolId: noted.id });
  });

  it('lists each tool with its charges and revenue, in order of creation', async () => {
    await register({ name: 'a', price: 0.1 });
    await register({ name: 'b', price: 0.000001 });
    for (const tool of ['b', 'a', 'b', 'b'])
      await charge(api, account, { tool, amount: undefined });
    await charge(api, account, { tool: 'a', amount: 1_000 });
    assert.deepEqual(
      (await list()).map(({ name, totalCharges, totalRevenue }) => [
        name,
        totalCharges,
        totalRevenue,
      ]),
      [
        ['a', 1, 0.1],
        ['b', 3, 0.000003],
      ],
    );
  });

  it('hides the tools of other developers, even with the same names', async () => {
    const other = await api.createAccount(1);
    await register({ name: 'search', price: 1 });
    await charge(api, account);
    assert.deepEqual(await list(other), []);
    const answer = await call(api, 'POST', '/v1/tools', {
      key: other.developerKey,
      body: { name: 'search', price: 2 },
    });
    bodyOf(answer, 201, ToolReply);
    assert.deepEqual(
      (await list(other)).map(({ price, totalCharges }) => [price, totalCharges]),
      [[2, 0]],
    );
  });

  it('changes the sent fields and leaves the rest', async () => {
    const { id, createdAt } = await register({ name: 'search', description: 'first', price: 1 });
    const was = { id, name: 'search', description: 'first', price: 1, createdAt, archived: false };
    assert.deepEqual(await change(id, {}), was);
    assert.deepEqual(await change(id, { price: 2 }), { ...was, price: 2 });
    assert.deepEqual(await change(id, { description: '' }), { ...was, price: 2, description: '' });
    const cleared = { ...was, price: null, description: '' };
    assert.deepEqual(await change(id, { price: null }), cleared);
    const renamed = await patch(id, { name: 'other' });
    assertError(renamed, 400, 'invalid_request', 'name');
  });

  it('charges a changed price on every server', async () => {
    const { id } = await register({ name: 'search', price: 1 });
    for (const server of api.servers) assert.equal(await priceAt(server, 'search'), 1);
    for (const [price, outcome] of [
      [2, 2],
      [null, 'invalid_amount'],
    ] as const) {
      await change(id, { price });
      assert.equal(await priceAt(api, 'search'), outcome);
      for (const server of api.servers) {
        await until(async () => (await priceAt(server, 'search')) === outcome);
      }
    }
  });

  it('keeps an archived tool out of the list, with its revenue, until it is unarchived', async () => {
    const { id } = await register({ name: 'old', price: 1 });
    await register({ name: 'new', price: 1 });
    await charge(api, account, { tool: 'old' });
    const before = await list();
    assert.equal((await change(id, { archived: true })).archived, true);
    assert.deepEqual(await list(), before.slice(1));
    assert.deepEqual(await list(account, '?archived=false'), before.slice(1));
    assert.deepEqual(await list(account, '?archived=true'), before.slice(0, 1));
    assert.equal((await change(id, { archived: true, price: 2 })).price, 2);
    assert.equal((await change(id, { archived: false, price: 1 })).archived, false);
    assert.deepEqual(await list(), before);
  });

  it('charges an archived tool by an amount, and not by its price', async () => {
    const { id } = await register({ name: 'old', price: 1 });
    await change(id, { archived: true });
    const [here, there] = api.servers;
    const byName = { tool: 'old', amount: undefined };
    const answer = await api.changingNothing(() => charge(here, account, byName));
    assertError(answer, 400, 'tool_archived', 'tool');
    const named = await charge(here, account, { tool: 'old', amount: 0.5 });
    assert.equal(bodyOf(named, 201, ChargeReply).amount, 0.5);
    await until(async () => (await priceAt(there ?? here, 'old')) === 'tool_archived');
    assertError(await post({ name: 'old' }), 409, 'tool_exists', undefined, { toolId: id });
    await change(id, { archived: false });
    assert.equal(await priceAt(here, 'old'), 1);
  });

  it('registers a charged name when it is changed', async () => {
    await charge(api, account, { tool: 'typo' });
    const [noted] = await list();
    await change(noted?.id ?? '', { archived: true });
    assert.deepEqual(await list(), []);
    assertError(await post({ name: 'typo' }), 409, 'tool_exists', undefined, { toolId: noted?.id });
  });

  it('lets other developers change no tool', async () => {
    const { id } = await register({ name: 'search', price: 1 });
    const before = await list();
    const stranger = await api.createAccount(1);
    assertError(await patch(id, { price: 2 }, stranger), 404, 'not_found');
    assert.deepEqual(await list(), before);
  });

  const nothing = `tool_${'0'.repeat(32)}`;
  for (const id of [nothing, 'x', 'tool_', `chg_${'0'.repeat(32)}`, '%00', '__proto__']) {
    it(`answers not_found for the tool ${id}`, async () => {
      assertError(await patch(id, { price: 1 }), 404, 'not_found');
    });
  }

  for (const [field, value] of [
    ['price', 0],
    ['price', '1.0000001'],
    ['price', 1e-7],
    ['description', null],
    ['description', 'd'.repeat(2_001)],
    ['archived', null],
    ['archived', 'true'],
    ['archived', 1],
  ] as const) {
    it(`refuses to change ${field} to ${JSON.stringify(value).slice(0, 20)}`, async () => {
      const { id } = await register({ name: 'kept', description: 'as it was', price: 1 });
      const before = await list();
      const answer = await patch(id, { price: 2, description: 'changed', [field]: value });
      assertError(answer, 400, field === 'price' ? 'invalid_amount' : 'invalid_request', field);
      assert.deepEqual(await list(), before);
    });
  }

  for (const query of ['archived=', 'archived=1', 'archived=TRUE', 'archived=true&archived=true']) {
    it(`refuses ?${query}`, async () => {
      const answer = await call(api, 'GET', `/v1/tools?${query}`, { key: account.developerKey });
      assertError(answer, 400, 'invalid_request', 'archived');
    });
  }

  for (const name of [
    '__proto__',
    'constructor',
    '🦦',
    '👩‍👩‍👧', // joined by U+200D
    '=1+1',
    '<b>',
    'שלום',
    'n'.repeat(100),
    '🦦'.repeat(100),
  ]) {
    it(`accepts the name ${name.slice(0, 20)}`, async () => {
      assert.equal((await register({ name, price: 1 })).name, name);
      assert.equal((await list())[0]?.name, name);
    });
  }

  for (const price of [0.000001, 1_000_000]) {
    it(`accepts the price ${price}`, async () => {
      assert.equal((await register({ name: 'priced', price })).price, price);
    });
  }

  for (const price of [0, -1, 1e-7, 1_000_000.000001, 1e300, '-1', '', true, [], {}]) {
    it(`refuses the price ${JSON.stringify(price)}`, async () => {
      const answer = await api.changingNothing(() => post({ name: 'priced', price }));
      assertError(answer, 400, 'invalid_amount', 'price');
    });
  }

  for (const name of [
    undefined,
    null,
    1,
    [],
    '',
    '  ',
    '\u200b\u2060',
    'n'.repeat(101),
    '🦦'.repeat(101),
    'a\nb',
    'a\u2028b',
    'a\0',
    'a\u009b',
    'a\u202eb',
    'a\u2066b',
    'a\u200fb',
    '\ud800',
  ]) {
    it(`refuses the name ${JSON.stringify(name)?.slice(0, 20) ?? 'left out'}`, async () => {
      const answer = await api.changingNothing(() => post({ name, price: 1 }));
      assertError(answer, 400, 'invalid_request', 'name');
    });
  }

  for (const description of [null, 1, {}, 'd'.repeat(2_001), 'a\0', '\ud800']) {
    it(`refuses the description ${JSON.stringify(description).slice(0, 20)}`, async () => {
      const answer = await api.changingNothing(() => post({ name: 'described', description }));
      assertError(answer, 400, 'invalid_request', 'description');
    });
  }
});
