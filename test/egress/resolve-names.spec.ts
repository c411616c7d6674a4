/** Names of others are resolved by DNS, and nothing else in the process waits for their nameservers. */
import assert from 'node:assert/strict';
import { createSocket, type Socket } from 'node:dgram';
import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { nameResolver, type LookupAll } from '../../src/egress/resolve-names.ts';

const IPV4 = 1;

describe('the resolver of names', () => {
  let nameserver: Socket;
  let resolve: LookupAll;
  let answer: (query: Buffer) => Buffer | undefined;
  let asked: number;

  beforeEach(async () => {
    asked = 0;
    nameserver = createSocket('udp4', (query, { port }) => {
      asked += 1;
      const reply = answer(query);
      if (reply) nameserver.send(reply, port, '127.0.0.1');
    });
    await new Promise<void>((bound) => nameserver.bind(0, '127.0.0.1', bound));
    resolve = nameResolver([`127.0.0.1:${nameserver.address().port}`]);
  });
  afterEach(() => void nameserver.close());

  const resolved = (hostname: string): Promise<LookupAddress[]> =>
    new Promise((done, fail) => {
      resolve(hostname, { all: true }, (error, addresses) =>
        error ? fail(error) : done(addresses),
      );
    });

  it('finds the addresses of a name', async () => {
    answer = (query) => replyTo(query, [93, 184, 216, 34]);
    assert.deepEqual(await resolved('tool.example'), [{ address: '93.184.216.34', family: 4 }]);
  });

  it('fails for a name without an address', async () => {
    answer = (query) => replyTo(query);
    await assert.rejects(resolved('tool.example'), { code: 'ENODATA' });
  });

  it('gives a silent nameserver up, and holds up no lookup of the process meanwhile', async () => {
    answer = () => undefined;
    let given = 0;
    const waiting = Array.from({ length: 16 }, async (_, index) => {
      await assert.rejects(resolved(`tool${index}.example`), { code: 'ETIMEOUT' });
      given += 1;
    });
    await lookup('localhost');
    assert.equal(given, 0);
    await Promise.all(waiting);
    assert.ok(asked >= 16);
  });
});

/** A reply with this IPv4 address, or with none. */
function replyTo(query: Buffer, address?: readonly number[]): Buffer {
  const endOfName = query.indexOf(0, 12);
  const question = query.subarray(12, endOfName + 5);
  const hasAnswer = address !== undefined && query.readUInt16BE(endOfName + 1) === IPV4;
  const header = Buffer.from([0, 0, 0x81, 0x80, 0, 1, 0, hasAnswer ? 1 : 0, 0, 0, 0, 0]);
  query.copy(header, 0, 0, 2);
  // The name of the question, its type and class, for a minute.
  const found = Buffer.from([0xc0, 12, 0, IPV4, 0, 1, 0, 0, 0, 60, 0, 4, ...(address ?? [])]);
  return Buffer.concat([header, question, ...(hasAnswer ? [found] : [])]);
}
