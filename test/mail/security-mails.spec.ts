/**
 * Mails about changes to how an owner signs in, and to who gets the account's events: an outage of the mail
 * server hides no change.
 */
import assert from 'node:assert/strict';
import { pino } from 'pino';
import { securityMails } from '../../src/mail/security-mails.ts';
import {
  NewWebhookEndpointReply,
  WebhookEndpointReply,
} from '../../src/schemas/webhook-endpoints.ts';
import { createDatabase, type Database } from '../../src/store/database.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { bodyOf, call } from '../support/http.ts';
import { startMailServer } from '../support/mail-server.ts';
import { newPasskey, registration } from '../support/passkey.ts';
import { choosePort } from '../support/ports.ts';
import { authBodyOf, cookiesOf, mailedToken, signIn } from '../support/sessions.ts';
import { startApi, startWorker, testEnvironment, until, type Server } from '../support/stack.ts';
import { totp } from '../support/totp.ts';

const PASSWORD = 'correct horse battery';

const auth = (server: Pick<Server, 'url'>, path: string, body: object | undefined, cookie = '') =>
  call(server, body ? 'POST' : 'GET', `/console/auth${path}`, {
    body,
    headers: { origin: server.url, ...(cookie === '' ? {} : { cookie }) },
  });

const subjectOf = ({ raw }: { readonly raw: string }): string =>
  /^Subject: (.*)\r$/m.exec(raw)?.[1] ?? '';

describe('a mail about a change to the sign-in', () => {
  let api: TestApi;
  let database: Database;

  before(async () => {
    api = await startTestApi({ env: { DEV_MAIL: 'true' } });
    database = await createDatabase(api.databaseUrl, { maxPoolSize: 4, onError: () => {} });
  });
  after(async () => {
    await database?.end();
    await api?.stop();
  });
  afterEach(() => api.sql.query('delete from console.owed_mails'));

  async function setPassword(server: Pick<Server, 'url'>, email: string): Promise<void> {
    // An earlier link is used up.
    await api.sql.query('delete from console.mails where recipient = $1', [email]);
    await auth(api, '/sign-up', { email });
    const token = await mailedToken(api.sql, email);
    const set = await auth(server, '/reset-password', { token, newPassword: PASSWORD });
    assert.equal(set.status, 200, JSON.stringify(set.body));
  }

  async function changeEverything(server: Pick<Server, 'url'>, email: string): Promise<void> {
    await setPassword(server, email);
    await signIn(server, api.databaseUrl, email);
    await setPassword(server, email);
    const cookie = await signIn(server, api.databaseUrl, email);
    const asked = await auth(server, '/passkey/generate-register-options', undefined, cookie);
    const { challenge } = authBodyOf(asked) as { challenge: string };
    const added = await auth(
      server,
      '/passkey/verify-registration',
      { name: 'Mine', response: registration(challenge, server.url) },
      `${cookie}; ${cookiesOf(asked)}`,
    );
    assert.equal(added.status, 200, JSON.stringify(added.body));
    const { id } = authBodyOf(added) as { id: string };
    const removed = await auth(server, '/passkey/delete-passkey', { id }, cookie);
    assert.equal(removed.status, 200, JSON.stringify(removed.body));
    const password = PASSWORD;
    const enabled = await auth(server, '/two-factor/enable', { password }, cookie);
    const { totpURI } = authBodyOf(enabled) as { totpURI: string };
    const code = totp(new URL(totpURI).searchParams.get('secret') ?? '');
    const on = await auth(server, '/two-factor/verify-totp', { code }, cookie);
    const off = await auth(server, '/two-factor/disable', { password }, cookiesOf(on));
    assert.equal(off.status, 200, JSON.stringify(off.body));
  }

  const owed = async () => {
    const { rows } = await api.sql.query<{ kind: string }>(
      'select kind from console.owed_mails order by kind',
    );
    return rows.map(({ kind }) => kind);
  };
  const age = (column: 'owed_at' | 'tried_at', by: string) =>
    api.sql.query(`update console.owed_mails set ${column} = ${column} - $1::interval`, [by]);
  const mailsVia = (smtpUrl: string | undefined, errors: string[] = []) =>
    securityMails({
      config: {
        consoleUrl: 'https://console.example.com',
        mail: { smtpUrl, from: 'Farebox <billing@example.com>', isKept: false },
      },
      database,
      log: pino({ level: 'error' }, { write: (line) => void errors.push(line) }),
    });
  const userOf = async (email: string) => {
    await setPassword(api, email);
    const { rows } = await api.sql.query<{ id: string }>(
      'select id from console.users where email = $1',
      [email],
    );
    return rows[0]?.id ?? assert.fail();
  };

  const addPasskey = (userId: string) =>
    api.sql.query(
      `insert into console.passkeys (user_id, credential_id, public_key, counter, device_type, backed_up)
       values ($1, gen_random_uuid(), 'k', 0, 'singleDevice', false)`,
      [userId],
    );

  it('is sent at once, and then not owed', async () => {
    const email = 'at-once@example.com';
    await changeEverything(api, email);
    await until(async () => (await owed()).length === 0);
    const { rows } = await api.sql.query(
      `select from console.mails where recipient = $1 and body like '%/console/security%'`,
      [email],
    );
    assert.equal(rows.length, 5);
  });

  it('is sent by a worker when the mail server was away during the change', async () => {
    const port = await choosePort();
    const env = { ...api.env, SMTP_URL: `smtp://farebox:p%40ss@127.0.0.1:${port}` };
    const cutOff = await startApi({ env });
    try {
      await changeEverything(cutOff, 'away@example.com');
    } finally {
      await cutOff.stop();
    }
    // A process that is killed right after the change loses no mail: the change itself owes it.
    const { rows: atOnce } = await api.sql.query<{ action: string }>(
      `select e.action from console.owed_mails o join farebox.audit_entries e on e.xmin = o.xmin order by 1`,
    );
    assert.deepEqual(
      atOnce.map(({ action }) => action).filter((action) => !action.startsWith('session.')),
      [
        'passkey.added',
        'passkey.removed',
        'password.set',
        'two_factor.changed',
        'two_factor.changed',
      ],
    );
    assert.deepEqual(await owed(), [
      'passkey_added',
      'passkey_removed',
      'password_set',
      'second_factor_off',
      'second_factor_on',
    ]);
    await age('tried_at', '5 minutes');
    const server = await startMailServer(port);
    const temporal = await testEnvironment({ url: api.databaseUrl });
    const TEMPORAL_ADDRESS = temporal['TEMPORAL_ADDRESS'] ?? '';
    const worker = await startWorker({ env: { ...temporal, ...env, TEMPORAL_ADDRESS } });
    try {
      await until(async () => (await owed()).length === 0);
      assert.deepEqual(server.mails.map((mail) => subjectOf(mail)).toSorted(), [
        'A passkey was added to your Farebox account',
        'A passkey was removed from your Farebox account',
        'Two-factor authentication was turned off for your Farebox account',
        'Two-factor authentication was turned on for your Farebox account',
        'Your Farebox password was set',
      ]);
    } finally {
      await worker.stop();
      await server.stop();
    }
  });

  it('is tried every five minutes for three days, and sent once by several workers', async () => {
    const userId = await userOf('patient@example.com');
    const errors: string[] = [];
    const away = mailsVia(`smtp://127.0.0.1:${await choosePort()}`, errors);
    await addPasskey(userId);
    away.tell(userId, 'passkey_added');
    await until(() => errors.length === 1);
    await age('owed_at', '71 hours');
    await age('tried_at', '4 minutes');
    await away.sendOverdue();
    assert.equal(errors.length, 1);
    await age('tried_at', '1 minute');
    await away.sendOverdue();
    assert.equal(errors.length, 2);
    await age('tried_at', '5 minutes');
    const server = await startMailServer();
    try {
      const workers = [1, 2, 3].map(() => mailsVia(server.urlFor('p@ss')));
      await Promise.all(workers.map((each) => each.sendOverdue()));
      assert.deepEqual(
        server.mails.map((mail) => subjectOf(mail)),
        ['A passkey was added to your Farebox account'],
      );
      assert.deepEqual(await owed(), []);
    } finally {
      await server.stop();
    }
    await addPasskey(userId);
    away.tell(userId, 'passkey_added');
    await until(() => errors.length === 3);
    await age('owed_at', '73 hours');
    await away.sendOverdue();
    assert.deepEqual(await owed(), []);
    assert.match(errors[3] ?? '', /gave up on mails/);
  });

  it('waits for a process that has a mail server', async () => {
    const userId = await userOf('patient-too@example.com');
    const errors: string[] = [];
    const without = mailsVia(undefined, errors);
    await addPasskey(userId);
    without.tell(userId, 'passkey_added');
    await until(() => errors.length === 1);
    assert.match(errors[0] ?? '', /SMTP_URL is not set/);
    await age('tried_at', '5 minutes');
    await without.sendOverdue();
    const server = await startMailServer();
    try {
      await mailsVia(server.urlFor('p@ss')).sendOverdue();
      assert.equal(server.mails.length, 1);
      assert.deepEqual(await owed(), []);
    } finally {
      await server.stop();
    }
  });

  it('is one for many changes that are made while the mail server is away', async () => {
    const userId = await userOf('busy@example.com');
    const errors: string[] = [];
    const away = mailsVia(`smtp://127.0.0.1:${await choosePort()}`, errors);
    for (let count = 1; count <= 20; count += 1) {
      await addPasskey(userId);
      away.tell(userId, 'passkey_added');
    }
    await until(() => errors.length === 20);
    assert.deepEqual(await owed(), ['passkey_added']);
  });

  it('is not owed for signing up, a first password, or a sign-in', async () => {
    const email = 'usual@example.com';
    await setPassword(api, email);
    const half = await auth(api, '/sign-in/email', { email, password: PASSWORD });
    const enabled = await auth(api, '/two-factor/enable', { password: PASSWORD }, cookiesOf(half));
    const { totpURI, backupCodes } = authBodyOf(enabled) as {
      readonly totpURI: string;
      readonly backupCodes: readonly string[];
    };
    const code = totp(new URL(totpURI).searchParams.get('secret') ?? '');
    const on = await auth(api, '/two-factor/verify-totp', { code }, cookiesOf(half));
    assert.equal(on.status, 200, JSON.stringify(on.body));
    await until(async () => (await owed()).length === 0);
    const asked = await auth(api, '/sign-in/email', { email, password: PASSWORD });
    const body = { code: backupCodes[0] };
    const entered = await auth(api, '/two-factor/verify-backup-code', body, cookiesOf(asked));
    assert.equal(entered.status, 200, JSON.stringify(entered.body));
    const passkey = await newPasskey(api.sql, email);
    await api.sql.query('delete from console.owed_mails');
    const options = await auth(api, '/passkey/generate-authenticate-options', undefined);
    const { challenge } = authBodyOf(options) as { challenge: string };
    const response = passkey.respond(challenge, api.url);
    const signed = await auth(
      api,
      '/passkey/verify-authentication',
      { response },
      cookiesOf(options),
    );
    assert.equal(signed.status, 200, JSON.stringify(signed.body));
    const { rows } = await api.sql.query<{ subject: string }>(
      'select subject from console.mails where recipient = $1 order by subject',
      [email],
    );
    assert.deepEqual(
      rows.map(({ subject }) => subject),
      [
        'Set your Farebox password',
        'Two-factor authentication was turned on for your Farebox account',
      ],
    );
    assert.deepEqual(await owed(), []);
    await api.sql.query('delete from console.users where email = $1', [email]);
    assert.deepEqual(await owed(), []);
  });

  it('is owed for a first password of somebody who signed in by a link before', async () => {
    const email = 'linked@example.com';
    await signIn(api, api.databaseUrl, email);
    await setPassword(api, email);
    await until(async () => {
      const { rows } = await api.sql.query(
        `select from console.mails where recipient = $1 and subject = 'Your Farebox password was set'`,
        [email],
      );
      return rows.length === 1;
    });
  });

  it('is owed when a key sends the events of the account to a new address, and is not put off by a further change', async () => {
    const { email, developerKey: key } = await api.createAccount(0);
    await signIn(api, api.databaseUrl, email);
    const made = await call(api, 'POST', '/v1/webhook-endpoints', {
      key,
      body: { url: 'https://mallory.example.com/first' },
    });
    const { id } = bodyOf(made, 201, NewWebhookEndpointReply);
    const change = async (body: object) =>
      bodyOf(
        await call(api, 'PATCH', `/v1/webhook-endpoints/${id}`, { key, body }),
        200,
        WebhookEndpointReply,
      );
    assert.deepEqual(await owed(), ['webhook_endpoint']);
    await age('tried_at', '5 minutes');
    await change({ url: 'https://mallory.example.com/second' });
    const server = await startMailServer();
    try {
      const mails = mailsVia(server.urlFor('p@ss'));
      await mails.sendOverdue();
      assert.deepEqual(await owed(), []);
      const [mail, ...others] = server.mails;
      assert.deepEqual(others, []);
      assert.equal(
        mail && subjectOf(mail),
        'Events of your Farebox account are sent to a new address',
      );
      const text = mail?.raw.replaceAll('=\r\n', '') ?? '';
      assert.match(text, /https:\/\/console\.example\.com\/console\/developer\/webhooks/);
      assert.doesNotMatch(text, /mallory/);
    } finally {
      await server.stop();
    }
    await change({ description: 'Renamed', enabled: false });
    assert.deepEqual(await owed(), []);
    await change({ url: 'https://mallory.example.com/third' });
    assert.deepEqual(await owed(), ['webhook_endpoint']);
  });

  it('is not retried when there is no such recipient', async () => {
    const userId = await userOf('nobody@refused.example');
    const server = await startMailServer();
    try {
      const errors: string[] = [];
      await addPasskey(userId);
      mailsVia(server.urlFor('p@ss'), errors).tell(userId, 'passkey_added');
      await until(async () => (await owed()).length === 0);
      assert.match(errors[0] ?? '', /no such user/);
    } finally {
      await server.stop();
    }
  });
});
