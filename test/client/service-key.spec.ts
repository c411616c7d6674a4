/** Which key a request to a tool server carries (specification sections 4.3 and 5). */
import assert from 'node:assert/strict';
import { serviceKeyOf } from '@farebox/client';
import { composeKey } from '../../src/domain/api-keys.ts';

const key = composeKey('fare', 'consumer', new Uint8Array(64).fill(7), 'live');
const other = composeKey('fare', 'consumer', new Uint8Array(64).fill(8), 'live');
const secret = composeKey('fare', 'developer', new Uint8Array(64).fill(7), 'live');

describe('client: the key of a request', () => {
  it('is X-Service-Key, of a Headers object', () => {
    assert.equal(serviceKeyOf(new Headers({ 'X-Service-Key': key })), key);
  });

  it('is X-Service-Key, of Node’s headers', () => {
    assert.equal(serviceKeyOf({ 'x-service-key': key, host: 'tools' }), key);
  });

  it('may have another form there, for the service to refuse', () => {
    assert.equal(serviceKeyOf({ 'x-service-key': 'hello' }), 'hello');
  });

  it('is absent without the header', () => {
    assert.equal(serviceKeyOf(new Headers()), undefined);
    assert.equal(serviceKeyOf({}), undefined);
  });

  it('is absent when the header was sent twice', () => {
    const twice = new Headers();
    twice.append('X-Service-Key', key);
    twice.append('X-Service-Key', other);
    assert.equal(serviceKeyOf(twice), undefined);
    assert.equal(serviceKeyOf({ 'x-service-key': [key, other] }), undefined);
    assert.equal(serviceKeyOf({ 'x-service-key': `${key}, ${other}` }), undefined);
  });

  it('is the bearer token when that is a consumer key', () => {
    assert.equal(serviceKeyOf({ authorization: `Bearer ${key}` }), key);
    assert.equal(serviceKeyOf(new Headers({ Authorization: `bearer ${key}` })), key);
  });

  it('is never another bearer token', () => {
    for (const token of [secret, 'eyJhbGciOi', `${key}x`, `${key} ${other}`, '']) {
      assert.equal(serviceKeyOf({ authorization: `Bearer ${token}` }), undefined);
    }
    assert.equal(serviceKeyOf({ authorization: `Basic ${key}` }), undefined);
  });

  it('does not fall back to the bearer token when X-Service-Key is empty or sent twice', () => {
    const authorization = `Bearer ${key}`;
    assert.equal(serviceKeyOf({ 'x-service-key': '', authorization }), undefined);
    assert.equal(serviceKeyOf({ 'x-service-key': [other, key], authorization }), undefined);
    assert.equal(serviceKeyOf({ 'x-service-key': other, authorization }), other);
  });
});
