/** Wire shapes of receipts: what they say, and the keys to verify them by. */
import { Type, type Static } from 'typebox';
import { SignedInvocation } from './invocations.ts';
import { Dollars, Timestamp } from './shapes.ts';

export const VerifyBody = Type.Object({
  receipt: Type.String({
    maxLength: 4_000,
    description: 'As a charge or an invocation returned it, or a public one',
  }),
});
export type VerifyBody = Static<typeof VerifyBody>;

export const PublicReceiptBody = VerifyBody;
export type PublicReceiptBody = VerifyBody;

export const PublicReceiptAnswer = Type.Object({
  receipt: Type.String({
    description: 'The same words, signed with Ed25519: ed25519.<key id>.<payload>.<signature>',
  }),
});

/**
 * `charge` or, of such a receipt, `invocation`. Of a receipt that does not hold nothing is shown: nobody
 * vouches for what it says.
 */
export const VerifyAnswer = Type.Object({
  valid: Type.Boolean({ description: 'The signature is right, and `recorded`' }),
  recorded: Type.Boolean({ description: 'The ledger has what the receipt says, to the byte' }),
  keyId: Type.Union([Type.String(), Type.Null()], {
    description: 'The key that signed; null when the signature is not right',
  }),
  charge: Type.Optional(
    Type.Union([
      Type.Object({
        id: Type.String(),
        consumerId: Type.String(),
        developerId: Type.String(),
        tool: Type.String(),
        amount: Dollars('What was charged'),
        createdAt: Timestamp,
      }),
      Type.Null(),
    ]),
  ),
  invocation: Type.Optional(SignedInvocation),
});

export const ReceiptKeysAnswer = Type.Object({
  keys: Type.Array(
    Type.Object({
      id: Type.String({ description: 'The key id in the receipt' }),
      key: Type.String({ description: 'HMAC-SHA-256 key, base64url' }),
    }),
  ),
});

/** A JSON Web Key Set (RFC 7517, RFC 8037). */
export const PublicKeysAnswer = Type.Object({
  keys: Type.Array(
    Type.Object({
      kty: Type.Literal('OKP'),
      crv: Type.Literal('Ed25519'),
      alg: Type.Literal('EdDSA'),
      use: Type.Literal('sig'),
      kid: Type.String({ description: 'The key id in the receipt' }),
      x: Type.String({ description: 'The public key, base64url' }),
    }),
  ),
});
