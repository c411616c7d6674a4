/** One rule for addresses: those of `farebox account create` and those with which people sign up and sign in. */
import assert from 'node:assert/strict';
import { z } from 'zod';
import { isEmail } from '../../src/domain/email.ts';

const ADDRESSES = [
  'you@example.com',
  'You.Name+7@mail.example.co',
  "o'brien@example.com",
  '_-_@a-b.example.com',
  'a@b.example',
];
const OTHERS = [
  'you@localhost',
  'you@example',
  'you@example.c',
  'you@192.0.2.1',
  'you@münchen.example.com',
  'ü@example.com',
  '.you@example.com',
  'you.@example.com',
  'you..name@example.com',
  "you'@example.com",
  'you@-example.com',
  'you@example..com',
  'a@b@example.com',
  'you name@example.com',
  '"you"@example.com',
  'you@example.com\n',
  'you',
  '',
];

describe('an address of an account', () => {
  it('is one that the sign-in library accepts, too', () => {
    for (const text of [...ADDRESSES, ...OTHERS]) {
      assert.equal(isEmail(text), ADDRESSES.includes(text), text);
      assert.equal(z.email().safeParse(text).success, ADDRESSES.includes(text), text);
    }
  });

  it('has at most 254 characters', () => {
    const domain = '@example.com';
    assert.ok(isEmail('a'.repeat(254 - domain.length) + domain));
    assert.ok(!isEmail('a'.repeat(255 - domain.length) + domain));
  });
});
