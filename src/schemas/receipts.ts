/** Schemas of receipts: whether one holds, what it says, and the keys that verify it. */
import { Type, type Static } from 'typebox';
import { SignedInvocation } from './invocations.ts';
import { Closed, Dollars, Id, Text, Timestamp } from './shapes.ts';

const RECEIPT = 'hmac_sha256.1.eyJpZCI6ImNoZ18wMWEx.S_fwtwsOLfxpQ8Dt';

export const VerifyBody = Type.Object({
  receipt: Type.String({
    maxLength: 4_000,
    description: 'The receipt, as a charge or an invocation returned it.',
    examples: [RECEIPT],
  }),
});
export type VerifyBody = Static<typeof VerifyBody>;

const ReceiptCharge = Closed({
  id: Id('charge', 'The id of the charge.'),
  consumerId: Id('consumer', 'The consumer who was charged.'),
  developerId: Id('developer', 'The developer who made the charge.'),
  tool: Text('The name of the tool.', 'search'),
  amount: Dollars('Dollars charged.'),
  createdAt: Timestamp,
});

/** Of a receipt that does not hold nothing is shown: nobody vouches for what it says. */
export const VerifyReply = Closed({
  valid: Type.Boolean({ description: 'Whether the receipt is genuine.', examples: [true] }),
  keyId: Type.Union([Type.String(), Type.Null()], {
    description: 'The key that signed it. Null when the receipt is not valid.',
    examples: ['1'],
  }),
  charge: Type.Optional(
    Type.Union([ReceiptCharge, Type.Null()], {
      description: 'The charge that it is for. Null when the receipt is not valid.',
    }),
  ),
  invocation: Type.Optional(SignedInvocation),
});
export type VerifyReply = Static<typeof VerifyReply>;

export const ReceiptKeysReply = Closed({
  keys: Type.Array(
    Closed({
      id: Text('The id of the key, as receipts name it.', '1'),
      key: Text(
        'The HMAC-SHA-256 key, in base64url. It signs as well as it verifies: keep it secret.',
        'xwF1v9uYQbS0yJm3n5cR7tKp2eLd8hGa4oZi6sWq0Vk',
      ),
    }),
  ),
});
export type ReceiptKeysReply = Static<typeof ReceiptKeysReply>;
