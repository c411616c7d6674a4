/** Wire shapes of receipts: what they say, and the keys to verify them by. */
import { Type, type Static } from 'typebox';
import { Dollars, Timestamp } from './shapes.ts';

export const VerifyBody = Type.Object({
  receipt: Type.String({ maxLength: 4_000, description: 'As a charge returned it' }),
});
export type VerifyBody = Static<typeof VerifyBody>;

/** Of a receipt that does not hold nothing is shown: nobody vouches for what it says. */
export const VerifyAnswer = Type.Object({
  valid: Type.Boolean(),
  keyId: Type.Union([Type.String(), Type.Null()]),
  charge: Type.Union([
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
});

export const ReceiptKeysAnswer = Type.Object({
  keys: Type.Array(
    Type.Object({
      id: Type.String({ description: 'The key id in the receipt' }),
      key: Type.String({ description: 'HMAC-SHA-256 key, base64url' }),
    }),
  ),
});
