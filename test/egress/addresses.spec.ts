/** Which addresses may be called on behalf of others: public ones, in any spelling. */
import assert from 'node:assert/strict';
import { isPublicAddress } from '../../src/egress/addresses.ts';
import { endpointProblem } from '../../src/egress/endpoints.ts';

const inPublic = (url: string) => endpointProblem(url, { allowPrivate: false });
const inDevelopment = (url: string) => endpointProblem(url, { allowPrivate: true });

describe('isPublicAddress', () => {
  const isPublic = ['1.1.1.1', '8.8.8.8', '9.255.255.255', '11.0.0.0', '100.63.255.255'].concat(
    ['100.128.0.0', '126.255.255.255', '128.0.0.0', '169.253.255.255', '172.15.255.255'],
    ['172.32.0.0', '192.167.255.255', '192.169.0.0', '198.17.255.255', '223.255.255.255'],
    ['2606:4700:4700::1111', '2a00:1450:4001:80b::200e', '2001:200::1', '2003::1', '3ffe::1'],
  );
  for (const ip of isPublic) {
    it(`accepts ${ip} as public`, () => assert.equal(isPublicAddress(ip), true));
  }

  const isNot = ['0.0.0.0', '0.255.255.255', '10.0.0.1', '100.64.0.0', '100.127.255.255'].concat(
    ['127.0.0.1', '127.255.255.255', '169.254.169.254', '172.16.0.0', '172.31.255.255'],
    ['192.0.0.192', '192.0.2.1', '192.88.99.1', '192.168.255.255', '198.18.0.0', '198.19.255.255'],
    ['198.51.100.7', '203.0.113.9', '224.0.0.1', '240.0.0.1', '255.255.255.255'],
    ['100.100.100.200', '168.63.129.16'],
    ['::', '::1', '::127.0.0.1', '::ffff:127.0.0.1', '::ffff:8.8.8.8', '::ffff:7f00:1'],
    ['64:ff9b::7f00:1', '64:ff9b:1::1', '100::1', '2001::1', '2001:0:7f00:1::', '2001:db8::1'],
    ['2002:7f00:1::', '2002:808:808::1', '3fff::1', 'fc00::1', 'fd00:ec2::254', 'fe80::1'],
    ['fe80::1%eth0', 'fec0::1', 'ff02::1', '4000::1'],
    ['', 'localhost', '127.1', '8.8.8', '[2606:4700::1111]', '8.8.8.8 ', '0x08080808'],
  );
  for (const ip of isNot) {
    it(`does not accept ${ip || 'nothing'} as public`, () =>
      assert.equal(isPublicAddress(ip), false));
  }
});

describe('endpointProblem', () => {
  for (const url of [
    'https://agents.example.com/a2a?v=1#x',
    'http://example.com:8080',
    'https://8.8.8.8/',
    'https://[2606:4700:4700::1111]:8443/mcp',
    'https://xn--bcher-kva.example/',
    'https://localhost.example.com/',
    'https://internal.example.com/',
  ]) {
    it(`accepts ${url}`, () => {
      assert.equal(inPublic(url), undefined);
      assert.equal(inDevelopment(url), undefined);
    });
  }

  // Each is the machine itself, its network, or a cloud's metadata, in some spelling.
  const privateHosts = ['127.0.0.1', 'localhost', '127.1', '2130706433', '0x7f000001'].concat(
    [
      '0177.0.0.1',
      '0.0.0.0',
      '0',
      '127.0.0.1.',
      'localhost.',
      'localhost..',
      'LOCALHOST',
      'a.localhost',
    ],
    ['①②⑦.⓪.⓪.①', '127。0。0。1', '%6c%6f%63%61%6c%68%6f%73%74'],
    ['[::1]', '[::]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::127.0.0.1]'],
    ['[64:ff9b::7f00:1]', '[2002:7f00:1::]', '[0:0:0:0:0:ffff:7f00:0001]', '[fd00:ec2::254]'],
    ['168.63.129.16', '169.254.169.254', '100.100.100.200', '10.1.2.3', '192.168.0.1'],
    ['metadata', 'postgres', 'metadata.google.internal', 'printer.local', 'nas.home.arpa'],
  );
  for (const host of privateHosts) {
    it(`refuses ${host} except in development`, () => {
      const url = `http://${host}:8080/agent`;
      assert.equal(inPublic(url), 'must be on a public address.');
      assert.equal(inDevelopment(url), undefined);
    });
  }

  for (const [url, problem] of [
    ['ftp://example.com/', 'must be an http(s) URL.'],
    ['file:///etc/passwd', 'must be an http(s) URL.'],
    ['gopher://example.com/', 'must be an http(s) URL.'],
    ['javascript:alert(1)', 'must be an http(s) URL.'],
    ['data:text/plain,x', 'must be an http(s) URL.'],
    ['ws://example.com/', 'must be an http(s) URL.'],
    ['https://user:secret@example.com/', 'must not have credentials in it.'],
    ['https://user@example.com/', 'must not have credentials in it.'],
    ['example.com', 'must be a URL.'],
    ['//example.com', 'must be a URL.'],
    ['http://', 'must be a URL.'],
    ['http://256.0.0.1/', 'must be a URL.'],
    ['http://[::1', 'must be a URL.'],
    ['http://example.com:99999/', 'must be a URL.'],
  ] as const) {
    it(`refuses ${url} everywhere`, () => {
      assert.equal(inPublic(url), problem);
      assert.equal(inDevelopment(url), problem);
    });
  }
});
