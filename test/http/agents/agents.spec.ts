/** POST /register: an agent belongs to the account that registered it first, and every field has limits. */
import assert from 'node:assert/strict';
import { uuidOf } from '../../../src/domain/ids.ts';
import { AGENTS_MAX } from '../../../src/store/agents/agents.ts';
import { AgentReply, ResolveReply } from '../../../src/schemas/agents.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';
import { startApi } from '../../support/stack.ts';

describe('POST /register', () => {
  let api: TestApi;
  let owner: TestAccount;
  let stranger: TestAccount;

  before(async () => {
    api = await startTestApi();
    owner = await api.createAccount(0);
    stranger = await api.createAccount(0);
  });
  after(() => api.stop());

  const minimal = {
    id: 'otter-watch',
    name: 'Otter Watch',
    protocol: 'mcp',
    endpoint: 'https://otters.example.com/mcp',
  };
  const post = (path: string, body: unknown, { legacyKey } = owner) =>
    call(api, 'POST', path, { headers: { 'x-service-key': legacyKey }, body });
  const register = (body: object, account = owner) =>
    post('/register', { ...minimal, ...body }, account);
  const rowOf = async (id: string) =>
    (await api.sql.query('select * from farebox.agents where id = $1', [id])).rows[0] as unknown;
  const find = async (query: string) =>
    bodyOf(await post('/resolve', { query }), 200, ResolveReply).results.map(
      ({ agentId }) => agentId,
    );

  it('registers an agent and returns it', async () => {
    const full = {
      ...minimal,
      description: 'Tells where otters are',
      capabilities: ['find_otter', 'count otters'],
      intents: ['otter.find'],
    };
    const { createdAt, ...rest } = bodyOf(await register(full), 201, AgentReply);
    assert.ok(Math.abs(Date.now() - Date.parse(createdAt)) < 60_000);
    assert.deepEqual(rest, full);
  });

  it('requires neither a description nor capabilities nor intents', async () => {
    const { description, capabilities, intents } = bodyOf(
      await register({ id: 'bare' }),
      201,
      AgentReply,
    );
    assert.deepEqual([description, capabilities, intents], ['', [], []]);
  });

  it('lets the owner change everything but the id, and finds the agent by its new text', async () => {
    const first = bodyOf(await register({ id: 'moving', name: 'Walrus Radar' }), 201, AgentReply);
    const changed = {
      id: 'moving',
      name: 'Narwhal Sonar',
      protocol: 'a2a',
      endpoint: 'http://narwhal.example.com/',
    };
    const second = bodyOf(await register(changed), 201, AgentReply);
    assert.deepEqual(second, {
      ...changed,
      description: '',
      capabilities: [],
      intents: [],
      createdAt: first.createdAt,
    });
    assert.deepEqual(await find('narwhal'), ['moving']);
    assert.deepEqual(await find('walrus'), []);
  });

  it('limits an account to a thousand agents, even when they come at once, and still lets them change', async () => {
    const crowded = await api.createAccount(0);
    await api.sql.query(
      `insert into farebox.agents (id, account_id, name, protocol, endpoint, description, capabilities,
         intents, name_words, search)
       select 'crowd-' || n, id, 'Crowd', 'http', 'https://crowd.example.com', '', '{}', '{}', '', ''
       from generate_series(1, $2) n, farebox.accounts where consumer_id = $1`,
      [uuidOf('consumer', crowded.consumerId), AGENTS_MAX - 2],
    );
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, n) => register({ id: `late-${n}` }, crowded)),
    );
    assert.equal(answers.filter(({ status }) => status === 201).length, 2);
    for (const answer of answers.filter(({ status }) => status !== 201)) {
      assertError(answer, 400, 'invalid_request', 'id');
    }
    bodyOf(await register({ id: 'crowd-7', name: 'Renamed' }, crowded), 201, AgentReply);
  });

  it('refuses an id of another account, and leaves that agent unchanged', async () => {
    await register({ id: 'mine', name: 'Capybara Spa' });
    const before = await rowOf('mine');
    const answer = await register({ id: 'mine', name: 'Stolen' }, stranger);
    assertError(answer, 409, 'agent_exists');
    assert.deepEqual(await rowOf('mine'), before);
  });

  it('gives an id to one account, under concurrent requests', async () => {
    const accounts = await Promise.all(Array.from({ length: 6 }, () => api.createAccount(0)));
    const answers = await Promise.all(
      accounts.map((account) => register({ id: 'raced' }, account)),
    );
    assert.deepEqual(
      answers.map(({ status }) => status).toSorted((a, b) => a - b),
      [201, 409, 409, 409, 409, 409],
    );
  });

  it('accepts many registrations with the same words at once, and counts each agent once', async () => {
    const ids = Array.from({ length: 24 }, (_, n) => `quokka-${n}`);
    const words = ['quokka', 'marsupial', 'selfie', 'island'];
    const registerAll = () =>
      Promise.all(
        ids.map((id, n) =>
          register({
            id,
            name: 'Quokka',
            description: [...words.slice(n % 4), ...words.slice(0, n % 4)].join(' '),
          }),
        ),
      );
    for (const { status } of [...(await registerAll()), ...(await registerAll())]) {
      assert.equal(status, 201);
    }
    const { rows } = await api.sql.query<{ agents: number }>(
      "select agents from farebox.agent_words where word in ('quokka', 'marsupi', 'selfi', 'island')",
    );
    assert.deepEqual(
      rows.map(({ agents }) => agents),
      [24, 24, 24, 24],
    );
  });

  it('keeps text unchanged: other scripts, quotes, markup, search operators', async () => {
    const odd = {
      id: 'a.b_c:d-9',
      name: `Ĵaŭdo & <b>"O'Brien"</b> | !(тест) 翻訳 🦦`,
      description: `%_\\ ' OR 1=1; --\n\ttabs :* <-> 'quoted`,
      capabilities: [`it's | a & b:*`, '翻訳'],
    };
    const { name, description, capabilities } = bodyOf(await register(odd), 201, AgentReply);
    assert.deepEqual({ id: odd.id, name, description, capabilities }, odd);
    assert.deepEqual(await find('ТЕСТ'), [odd.id]);
    assert.deepEqual(await find('jaudo'), [odd.id]);
  });

  it('keeps the protocol as it was written, in letters of either case', async () => {
    const agent = { id: 'shouting', protocol: 'MCP' };
    assert.equal(bodyOf(await register(agent), 201, AgentReply).protocol, 'MCP');
  });

  const bounds: readonly (readonly [field: string, atBound: unknown, ...refused: unknown[]])[] = [
    ['id', 'x'.repeat(100), 'x'.repeat(101), '', 'a b', 'a/b', '-a', '.a', 'ä', 'a\n', 7, null],
    ['name', 'x'.repeat(100), 'x'.repeat(101), '', ' ', 'a\nb', 'a\u0000', '\ud800', 7, null],
    ['protocol', 'p'.repeat(30), 'p'.repeat(31), '', 'm cp', 'm_cp', 'MÇP', 7, null],
    ['description', 'x'.repeat(2_000), 'x'.repeat(2_001), 'a\u0000', '\udfff', 7, null],
    ['capabilities', Array(50).fill('x'.repeat(100)), Array(51).fill('x'), 'x', {}, null],
    ['intents', Array(50).fill('x'.repeat(100)), Array(51).fill('x'), 'x', {}, null],
    [
      'endpoint',
      `https://example.com/${'x'.repeat(1_980)}`,
      `https://example.com/${'x'.repeat(1_981)}`,
      '',
      'example.com',
      'ftp://example.com',
      'https://u:p@example.com',
      'http://127.0.0.1/',
      'http://[::1]/',
      'http://localhost:3000',
      'http://169.254.169.254/',
      ' https://a.com',
      'https://a.com/ b',
      'https://a\n.com',
      7,
      null,
    ],
  ];
  for (const [field, atBound, ...refused] of bounds) {
    it(`accepts ${field} up to its limit`, async () => {
      const id = field === 'id' ? atBound : `bound-${field}`;
      bodyOf(await register({ id, [field]: atBound }), 201, AgentReply);
    });
    for (const value of refused) {
      const shown = JSON.stringify(value);
      it(`refuses the ${field} ${shown.length > 40 ? `of ${shown.length} characters` : shown}`, async () => {
        const before = await api.sql.query('select count(*) from farebox.agents');
        assertError(await register({ [field]: value }), 400, 'invalid_request', field);
        assert.deepEqual(
          (await api.sql.query('select count(*) from farebox.agents')).rows,
          before.rows,
        );
      });
    }
  }

  for (const list of ['capabilities', 'intents']) {
    for (const item of ['', ' ', 'x'.repeat(101), 'a\nb', '\u0000', 7, null]) {
      it(`refuses ${JSON.stringify(item).slice(0, 20)} among ${list}`, async () => {
        const answer = await register({ [list]: ['fine', item] });
        assertError(answer, 400, 'invalid_request', `${list}.1`);
      });
    }
  }

  for (const field of ['id', 'name', 'protocol', 'endpoint']) {
    it(`refuses a body without ${field}`, async () => {
      const body = Object.fromEntries(Object.entries(minimal).filter(([name]) => name !== field));
      assertError(await post('/register', body), 400, 'invalid_request', field);
    });
  }

  it('accepts agents on loopback where the setting allows it, still without credentials', async () => {
    const development = await startApi({ env: { ...api.env, ALLOW_PRIVATE_ENDPOINTS: 'true' } });
    const answerTo = (endpoint: string) =>
      call(development, 'POST', '/register', {
        headers: { 'x-service-key': owner.legacyKey },
        body: { ...minimal, id: 'local', endpoint },
      });
    try {
      bodyOf(await answerTo('http://127.0.0.1:9000/mcp'), 201, AgentReply);
      bodyOf(await answerTo('http://localhost:9000/mcp'), 201, AgentReply);
      assertError(await answerTo('http://u:p@localhost/'), 400, 'invalid_request', 'endpoint');
      assertError(await answerTo('file:///etc/passwd'), 400, 'invalid_request', 'endpoint');
    } finally {
      await development.stop();
    }
  });

  const keys = {
    none: () => ({}),
    'a consumer key': () => ({ 'x-service-key': owner.consumerKey }),
    'a secret key': () => ({ 'x-service-key': owner.developerKey }),
    'a legacy key as a bearer': () => ({ authorization: `Bearer ${owner.legacyKey}` }),
    'a key that is cut short': () => ({ 'x-service-key': owner.legacyKey.slice(0, -1) }),
  };
  for (const [what, headers] of Object.entries(keys)) {
    it(`answers invalid_api_key to ${what}`, async () => {
      for (const path of ['/register', '/resolve', '/intent/preview']) {
        const body = { ...minimal, query: 'otters' };
        const answer = await call(api, 'POST', path, { headers: headers(), body });
        assertError(answer, 401, 'invalid_api_key');
      }
    });
  }
});
