/** Connections to Temporal: with client certificates, a private authority, profiles, and keys that rotate. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readTemporalConfig } from '../../src/config.ts';
import { ConfigError } from '../../src/read-setting.ts';
import { createTemporalClient } from '../../src/temporal/client.ts';
import { ensureSearchAttributes, registerByHand } from '../../src/temporal/search-attributes.ts';
import { SERVER_NAME, startMutualTls, type MutualTls } from '../support/mutual-tls.ts';
import type { Environment } from '../support/stack.ts';
import { openTopUpHarness } from '../support/top-up-harness.ts';

describe('a Temporal server that requires client certificates', () => {
  let tls: MutualTls;
  let env: Environment;

  before(async () => {
    tls = await startMutualTls(process.env['TEST_TEMPORAL_ADDRESS'] ?? '');
    env = {
      TEMPORAL_ADDRESS: tls.address,
      TEMPORAL_TLS_CLIENT_CERT_PATH: tls.file('client.crt'),
      TEMPORAL_TLS_CLIENT_KEY_PATH: tls.file('client.key'),
      TEMPORAL_TLS_SERVER_CA_CERT_PATH: tls.file('ca.crt'),
      TEMPORAL_TLS_SERVER_NAME: SERVER_NAME,
    };
  });
  after(() => tls?.stop());

  it('serves the API and the worker', async () => {
    const harness = await openTopUpHarness(env);
    try {
      await harness.startWorker();
      const result = await harness.requestDirect(await harness.newConsumer(), 25);
      assert.equal(result.kind, 'completed');
    } finally {
      await harness.close();
    }
  });

  it('serves a client with a profile', async () => {
    const profile = join(mkdtempSync(join(tmpdir(), 'farebox-profile-')), 'temporal.toml');
    writeFileSync(
      profile,
      `[profile.staging]
address = "${tls.address}"
[profile.staging.tls]
server_name = "${SERVER_NAME}"
server_ca_cert_path = "${tls.file('ca.crt')}"
client_cert_path = "${tls.file('client.crt')}"
client_key_path = "${tls.file('client.key')}"
`,
    );
    assert.equal(
      await isServed({ TEMPORAL_CONFIG_FILE: profile, TEMPORAL_PROFILE: 'staging' }),
      true,
    );
    rmSync(profile);
  });

  const refused: Readonly<Record<string, () => Environment>> = {
    'without a certificate': () => ({
      TEMPORAL_TLS_CLIENT_CERT_PATH: undefined,
      TEMPORAL_TLS_CLIENT_KEY_PATH: undefined,
    }),
    'that trusts another authority': () => ({
      TEMPORAL_TLS_SERVER_CA_CERT_PATH: tls.file('other-ca.crt'),
    }),
    'that expects another name': () => ({ TEMPORAL_TLS_SERVER_NAME: 'another.internal' }),
  };
  for (const [what, changes] of Object.entries(refused)) {
    it(`does not serve a client ${what}`, async () => {
      assert.equal(await isServed({ ...env, ...changes() }), false);
    });
  }
});

describe('the settings of Temporal', () => {
  it('follow an API key that rotates in its file', () => {
    const folder = mkdtempSync(join(tmpdir(), 'farebox-profile-'));
    const file = join(folder, 'temporal.toml');
    const write = (key: string) =>
      writeFileSync(
        file,
        `[profile.default]\naddress = "x:1"\nnamespace = "a.b"\napi_key = "${key}"\n`,
      );
    write('first');
    const config = readTemporalConfig({ TEMPORAL_CONFIG_FILE: file });
    const { address, namespace, tls, apiKey } = config;
    assert.deepEqual([address, namespace, tls, apiKey], ['x:1', 'a.b', true, 'first']);
    write('second');
    assert.equal(config.readApiKey?.(), 'second');
    rmSync(folder, { recursive: true });
  });

  it('are refused in one sentence that names the mistake', () => {
    const env = { TEMPORAL_ADDRESS: 'x:1', TEMPORAL_CONFIG_FILE: '/nowhere.toml' };
    assert.throws(() => readTemporalConfig(env), ConfigError);
    const missing = { TEMPORAL_ADDRESS: 'x:1', TEMPORAL_TLS_SERVER_CA_CERT_PATH: '/nowhere.crt' };
    assert.throws(() => readTemporalConfig(missing), /TEMPORAL_.*nowhere\.crt/);
    assert.throws(() => readTemporalConfig({}), /TEMPORAL_ADDRESS is not set/);
  });
});

describe('search attributes', () => {
  it('are left to the operator where clients may not register them, with the command', async () => {
    const denied = Object.assign(new Error('7 PERMISSION_DENIED: not on Cloud'), {
      code: 7,
      details: 'not on Cloud',
      metadata: {},
    });
    const operatorService = { listSearchAttributes: () => Promise.reject(denied) };
    const cloud = { operatorService } as unknown as Parameters<typeof ensureSearchAttributes>[0];
    assert.deepEqual(await ensureSearchAttributes(cloud, 'a.b'), { kind: 'not_permitted' });
    assert.match(
      registerByHand('a.b'),
      /--namespace a\.b .*\n {2}--search-attribute "TopUpStatus=Keyword"/,
    );
  });
});

async function isServed(environment: Environment): Promise<boolean> {
  const temporal = createTemporalClient(readTemporalConfig(environment));
  try {
    return await temporal.isUp(5_000);
  } finally {
    await temporal.close();
  }
}
