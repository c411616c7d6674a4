/** The search that ends each test run finds what it is for. */
import assert from 'node:assert/strict';
import { appendFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { composeKey } from '../../src/domain/api-keys.ts';
import { findLeaks, keysIn } from './leaks.ts';

const KEY = composeKey('fare', 'consumer', new Uint8Array(32).fill(9), 'live');
const GIVEN = 'whsec_of_a_process_of_this_run';
/** More than a stream reads at once. */
const PIECE_BYTES = 70_000;

describe('the search for leaked secrets', () => {
  let folder: string;
  let dataFolder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'farebox-leaks-'));
    dataFolder = join(folder, 'data');
    await mkdir(join(dataFolder, 'temporal'), { recursive: true });
    await writeFile(join(folder, 'given-secrets'), `${GIVEN}\nshort\n`);
    await writeFile(join(folder, 'api.log'), '{"msg":"short","id":"key_01a1fd6455e57aa3b31e"}\n');
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it('finds nothing where there is nothing', async () => {
    assert.deepEqual(await findLeaks(folder, dataFolder), []);
  });

  it('finds a key in a log, wherever it is in it', async () => {
    const line = `{"path":"/v1/${KEY}?a=1"}\n`;
    for (const before of [0, PIECE_BYTES, 65_536 - 20]) {
      await writeFile(join(folder, 'worker.log'), 'x'.repeat(before) + ' '.repeat(4) + line);
      const [leak, ...more] = await findLeaks(folder, dataFolder);
      assert.match(leak ?? '', /^worker\.log contains fare_ck_live_/);
      assert.deepEqual(more, []);
    }
  });

  it('finds what a process was given in the bytes that Temporal stored', async () => {
    const bytes = Buffer.concat([Buffer.from([0, 255, 10, 30]), Buffer.from(`"${GIVEN}"`)]);
    await appendFile(join(dataFolder, 'temporal/temporal.db-wal'), bytes);
    const [leak] = await findLeaks(folder, dataFolder);
    assert.match(leak ?? '', /^temporal\/temporal\.db-wal contains whsec_of_a_process_o\.\.\./);
  });

  it('tells keys from what looks like one', () => {
    const other = KEY.slice(0, -1) + (KEY.endsWith('0') ? '1' : '0');
    assert.deepEqual(keysIn(`${other} ${KEY}, key_01a1fd6455e57aa3b31e95f51a48130e`), [KEY]);
  });
});
