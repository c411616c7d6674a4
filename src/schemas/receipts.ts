/** Wire shapes of receipts: what they say, and the keys to verify them by. */
import { Type, type Static } from 'typebox';
import { SignedInvocation } from './invocations.ts';
import { Dollars, Timestamp } from './shapes.ts';

export const VerifyBody = Type.Object({
  receipt: Type.String({
    maxLength: 4_000,
    description: 'As a charge or an invocation returned it',
  }),
});
export type VerifyBody = Static<typeof VerifyBody>;

/**
 * `charge` or, of such a receipt, `invocation`. Of a receipt that does not hold nothing is shown: nobody
 * vouches for what it says.
 */
export const VerifyAnswer = Type.Object({
  valid: Type.Boolean(),
  keyId: Type.Union([Type.String(), Type.Null()]),
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
