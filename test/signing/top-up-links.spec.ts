/** A top-up link returns exactly its contents, to the byte, for as long as its secret is kept. */
import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { TopUpLinks } from '../../src/signing/top-up-links.ts';
import { asMicros } from '../../src/domain/money.ts';
import { readMasterSecrets } from '../../src/read-setting.ts';

const CLOCK = { nowMs: Date.now };
const OLD = 'a'.repeat(32);
const NEW = 'b'.repeat(32);

const linksOf = (list: string) =>
  new TopUpLinks(readMasterSecrets({ MASTER_SECRET: list }), 'https://pay.example', CLOCK);

function tokenOf(url: string): string {
  return new URL(url).searchParams.get('link') ?? '';
}

describe('a top-up link', () => {
  const links = linksOf(OLD);
  const consumerId = randomUUIDv7();
  const developerId = randomUUIDv7();
  const token = (micros: number) =>
    tokenOf(links.urlFor(consumerId, developerId, asMicros(micros)));

  it('names the consumer and the developer, and expires in an hour', () => {
    const read = links.read(token(7_000_000));
    assert.equal(read?.consumerId, consumerId);
    assert.equal(read?.developerId, developerId);
    assert.ok(Math.abs((read?.expiresAtMs ?? 0) - Date.now() - 3_600_000) < 5_000);
    const ownRequest = links.read(tokenOf(links.urlFor(consumerId, undefined, asMicros(1))));
    assert.equal(ownRequest?.developerId, undefined);
  });

  const SUGGESTED: readonly (readonly [short: number, dollars: number])[] = [
    [1, 5],
    [4_999_999, 5],
    [5_000_001, 6],
    [12_000_000, 12],
    [10_000_000_000_000, 999_999.99],
  ];
  for (const [short, dollars] of SUGGESTED) {
    it(`suggests $${dollars} where ${short} micro-dollars are missing`, () => {
      assert.equal((links.read(token(short))?.suggestedMicros ?? 0) / 1e6, dollars);
    });
  }

  it('is refused with any of its characters changed, removed or added', () => {
    const good = token(1);
    for (let at = 0; at < good.length; at += 1) {
      const other = good[at] === 'A' ? 'B' : 'A';
      const bad = good.slice(0, at) + other + good.slice(at + 1);
      assert.equal(links.read(bad), undefined, `character ${at}`);
    }
    for (const bad of ['', good.slice(0, -1), `${good}A`, ` ${good}`, 'x'.repeat(100_000)]) {
      assert.equal(links.read(bad), undefined);
    }
  });

  it('is signed by the first secret of the list, and read by all that are not retired', () => {
    const isRead = (link: string, list: string) => linksOf(list).read(link) !== undefined;
    const old = token(1);
    const before = tokenOf(linksOf(`1:${OLD},2:${NEW}`).urlFor(consumerId, undefined, asMicros(1)));
    const after = tokenOf(linksOf(`2:${NEW},1:${OLD}`).urlFor(consumerId, undefined, asMicros(1)));
    for (const list of [`1:${OLD},2:${NEW}`, `2:${NEW},1:${OLD}`]) {
      assert.deepEqual(
        [old, before, after].map((link) => isRead(link, list)),
        [true, true, true],
        list,
      );
    }
    for (const list of [`2:${NEW},1-retired:${OLD}`, `2:${NEW}`]) {
      assert.deepEqual(
        [old, before, after].map((link) => isRead(link, list)),
        [false, false, true],
        list,
      );
    }
  });
});
