/** Malformed requests are refused with an error that names the fault, and change nothing. */
import assert from 'node:assert/strict';
import type { ErrorCode } from '../../../src/domain/errors.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError, call, charge } from '../../support/http.ts';

describe('POST /v1/charges: 400', () => {
  let api: TestApi;
  let account: TestAccount;

  before(async () => {
    api = await startTestApi();
    account = await api.createAccount(10_000_000);
  });
  after(() => api.stop());

  async function messageOf(changes: Readonly<Record<string, unknown>>): Promise<string> {
    const { body } = await charge(api, account, changes);
    return (body as { error: { message: string } }).error.message;
  }

  const amounts: readonly unknown[] = [
    0,
    -0,
    -1,
    -0.000001,
    1e-7,
    0.1234567,
    0.0000009999,
    1_000_000.000001,
    1_000_001,
    1e15,
    1e300,
    Number.MAX_SAFE_INTEGER,
    '0',
    '-1',
    '+1',
    '0.0000001',
    '0.1234567',
    '1000000.000001',
    '1e2',
    '0x10',
    '1,5',
    '.5',
    '5.',
    ' 1',
    '$1',
    'NaN',
    '9'.repeat(40),
    '',
    'free',
    true,
    false,
    null,
    [],
    [1],
    {},
    { amount: 1 },
  ];
  for (const amount of amounts) {
    it(`refuses the amount ${JSON.stringify(amount)}`, async () => {
      const answer = await api.changingNothing(() => charge(api, account, { amount }));
      assertError(answer, 400, 'invalid_amount', 'amount');
    });
  }

  it('states the refused value, also one that floats came to', async () => {
    assert.match(
      await messageOf({ amount: 3 * 0.07 }),
      /^amount is 0\.21000000000000002\. .*six decimals/,
    );
    assert.match(
      await messageOf({ amount: '0.1234567' }),
      /^amount is "0\.1234567"\. .*six decimals/,
    );
    assert.match(await messageOf({ amount: true }), /^amount is true\. .*decimal string/);
    assert.match(await messageOf({ amount: '9'.repeat(1_000) }), /^amount is "9{39}\.\.\.\. It/);
  });

  it('refuses an amount 5,000 levels deep', async () => {
    const deep = '['.repeat(5_000) + ']'.repeat(5_000);
    const rawBody = `{"apiKey":"${account.consumerKey}","tool":"search","amount":${deep}}`;
    await assertRefused(rawBody, 'invalid_amount', 'amount');
  });

  it('states the allowed types of a member, and the fault of a value with an allowed type', async () => {
    assert.equal(
      await messageOf({ metadata: { a: { b: 1 } } }),
      'metadata.a must be a string, a number, true or false, or null.',
    );
    assert.match(
      await messageOf({ metadata: { a: 'v'.repeat(501) } }),
      /^metadata\.a .*500 characters\.$/,
    );
  });

  it('says in plain words what to send', async () => {
    const members = Object.fromEntries(Array.from({ length: 60 }, (_, place) => [`m${place}`, 1]));
    assert.equal(await messageOf({ tool: 5 }), 'tool must be a string.');
    assert.equal(await messageOf({ tool: '' }), 'tool must have at least 1 character.');
    assert.equal(await messageOf({ metadata: [] }), 'metadata must be an object.');
    assert.equal(
      await messageOf({ metadata: { '': 1 } }),
      'metadata must be an object whose names have 1 to 40 characters, without NUL or unpaired surrogates.',
    );
    assert.match(
      await messageOf({ metadata: members }),
      /^metadata must have at most \d+ fields\.$/,
    );
    const batches = [
      [[], 'charges must have at least 1 item.'],
      [{}, 'charges must be an array.'],
    ] as const;
    for (const [charges, message] of batches) {
      const { body } = await call(api, 'POST', '/v1/charges/batch', {
        key: account.developerKey,
        body: { charges },
      });
      assert.equal((body as { error: { message: string } }).error.message, message);
    }
  });

  const texts: readonly (readonly [amount: string, code: ErrorCode, param?: string])[] = [
    ['1e309', 'invalid_amount', 'amount'],
    ['-1e309', 'invalid_amount', 'amount'],
    ['-0', 'invalid_amount', 'amount'],
    ['NaN', 'invalid_json'],
    ['Infinity', 'invalid_json'],
    ['0x10', 'invalid_json'],
    ['1_000', 'invalid_json'],
    ['01', 'invalid_json'],
    ['1,5', 'invalid_json'],
    ['.5', 'invalid_json'],
  ];
  for (const [amount, code, param] of texts) {
    it(`refuses the amount written as ${amount}`, async () => {
      const rawBody = `{"apiKey":"${account.consumerKey}","tool":"search","amount":${amount}}`;
      await assertRefused(rawBody, code, param);
    });
  }

  const tools: readonly unknown[] = [
    undefined,
    null,
    1,
    true,
    [],
    ['search'],
    {},
    '',
    ' ',
    '\u3000',
    'n'.repeat(101),
    '🦦'.repeat(101),
    'a\nb',
    'a\tb',
    'nul\0',
    '\u001b[31m',
    'del\u007f',
    'c1\u0085',
    'a\u2028b',
    'a\u2029b',
    'half \ud800',
    '\udc00 half',
  ];
  for (const tool of tools) {
    it(`refuses the tool ${JSON.stringify(tool)?.slice(0, 40) ?? 'left out'}`, async () => {
      const answer = await api.changingNothing(() => charge(api, account, { tool }));
      assertError(answer, 400, 'invalid_request', 'tool');
    });
  }

  const metadata: readonly (readonly [what: string, metadata: unknown, param?: string])[] = [
    ['null', null],
    ['text', 'text'],
    ['a number', 1],
    ['an array', []],
    ['an object inside', { a: {} }, 'metadata.a'],
    ['an array inside', { a: [] }, 'metadata.a'],
    ['501 characters', { a: 'v'.repeat(501) }, 'metadata.a'],
    ['a NUL in a value', { a: 'nul\0' }, 'metadata.a'],
    ['half of a surrogate pair in a value', { a: 'half \ud800' }, 'metadata.a'],
    ['a name of 41 characters', { ['k'.repeat(41)]: 1 }],
    ['an empty name', { '': 1 }],
    ['a NUL in a name', { 'nul\0': 1 }],
    ['half of a surrogate pair in a name', { 'half \ud800': 1 }],
    ['depth behind a bad name', { 'nul\0': { a: { b: [] } } }],
    ['21 members', Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`k${n}`, n]))],
  ];
  for (const [what, each, param = 'metadata'] of metadata) {
    it(`refuses metadata with ${what}`, async () => {
      const answer = await api.changingNothing(() => charge(api, account, { metadata: each }));
      assertError(answer, 400, 'invalid_request', param);
    });
  }

  it('refuses metadata with a number that JSON has and JavaScript does not', async () => {
    const body = `{"apiKey":"${account.consumerKey}","tool":"x","amount":1,"metadata":{"a":1e309}}`;
    await assertRefused(body, 'invalid_request', 'metadata.a');
  });

  it('refuses metadata 30,000 levels deep', async () => {
    const deep = '['.repeat(30_000) + ']'.repeat(30_000);
    const body = `{"apiKey":"${account.consumerKey}","tool":"x","amount":1,"metadata":${deep}}`;
    await assertRefused(body, 'invalid_request', 'metadata');
  });

  const bodies: readonly (readonly [what: string, body: string | number[], code: ErrorCode])[] = [
    ['an empty body', '', 'invalid_json'],
    ['white space', ' \n ', 'invalid_json'],
    ['text', 'amount=1&tool=search', 'invalid_json'],
    ['half an object', '{"apiKey":', 'invalid_json'],
    ['two objects', '{}{}', 'invalid_json'],
    ['single quotes', `{'tool':'search'}`, 'invalid_json'],
    ['a comment', '{/* */}', 'invalid_json'],
    ['a byte order mark', '\ufeff{}', 'invalid_json'],
    ['30,000 open brackets', '['.repeat(30_000), 'invalid_json'],
    ['30,000 levels', '['.repeat(30_000) + ']'.repeat(30_000), 'invalid_request'],
    ['invalid UTF-8', [0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d], 'invalid_json'],
    ['an overlong encoding', [0x22, 0xc0, 0xaf, 0x22], 'invalid_json'],
    ['UTF-16', [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00], 'invalid_json'],
    ['NUL bytes', [0, 0, 0, 0], 'invalid_json'],
    ['null', 'null', 'invalid_request'],
    ['a number', '1', 'invalid_request'],
    ['text in quotes', '"search"', 'invalid_request'],
    ['true', 'true', 'invalid_request'],
    ['an array', '[]', 'invalid_request'],
    ['an array of charges', '[{"tool":"search","amount":1}]', 'invalid_request'],
  ];
  for (const [what, body, code] of bodies) {
    it(`refuses ${what} as a body`, async () => {
      await assertRefused(typeof body === 'string' ? body : Uint8Array.from(body), code);
    });
  }

  it('refuses a tool that has neither a price nor an amount', async () => {
    const change = { tool: 'never seen', amount: undefined };
    const unknown = await api.changingNothing(() => charge(api, account, change));
    assertError(unknown, 400, 'unknown_tool', 'tool');
    await call(api, 'POST', '/v1/tools', { key: account.developerKey, body: { name: 'free' } });
    const unpriced = { tool: 'free', amount: undefined };
    const answer = await api.changingNothing(() => charge(api, account, unpriced));
    assertError(answer, 400, 'invalid_amount', 'amount');
  });

  it('refuses new tool names beyond a thousand unregistered ones', async () => {
    const developer = await api.createAccount(1);
    const uuid = developer.developerId.slice('dev_'.length);
    await api.sql.query(
      `insert into farebox.tools (id, developer_id, name)
       select gen_random_uuid(), $1, 'typo ' || n from generate_series(1, 1000) n`,
      [uuid],
    );
    const answer = await api.changingNothing(() => charge(api, developer, { tool: 'one more' }));
    assertError(answer, 400, 'unknown_tool', 'tool');
  });

  async function assertRefused(
    rawBody: string | Uint8Array<ArrayBuffer>,
    code: ErrorCode,
    param?: string,
  ): Promise<void> {
    const key = account.developerKey;
    const answer = await api.changingNothing(() =>
      call(api, 'POST', '/v1/charges', { key, rawBody }),
    );
    assertError(answer, 400, code, param);
  }
});
