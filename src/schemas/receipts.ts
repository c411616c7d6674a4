/** Schemas of receipts: verification, contents, and the keys that verify them. */
import { Type, type Static } from 'typebox';
import { SignedInvocation } from './invocations.ts';
import { CardVersion } from './tools.ts';
import { Closed, Dollars, Id, Text, Timestamp } from './shapes.ts';

const RECEIPT = 'hmac_sha256.1.eyJpZCI6ImNoZ18wMWEx.S_fwtwsOLfxpQ8Dt';

export const VerifyBody = Closed({
  receipt: Type.String({
    maxLength: 4_000,
    description: 'A receipt returned by a charge or an invocation, or a public receipt.',
    examples: [RECEIPT],
  }),
});
export type VerifyBody = Static<typeof VerifyBody>;

export const PublicReceiptBody = Closed(VerifyBody.properties);
export type PublicReceiptBody = Static<typeof PublicReceiptBody>;

export const PublicReceiptReply = Closed({
  receipt: Text(
    'The same payload, signed with Ed25519: `ed25519.<key id>.<payload>.<signature>`.',
    'ed25519.1.eyJpZCI6ImNoZ18wMWEx.S_fwtwsOLfxpQ8Dt',
  ),
});
export type PublicReceiptReply = Static<typeof PublicReceiptReply>;

const ReceiptCharge = Closed({
  id: Id('charge', 'The id of the charge.'),
  consumerId: Id('consumer', 'The consumer who was charged.'),
  developerId: Id('developer', 'The developer who made the charge.'),
  tool: Text('The name of the tool.', 'search'),
  amount: Dollars('Dollars charged.'),
  createdAt: Timestamp,
  cardVersion: Type.Optional(CardVersion),
  livemode: Type.Boolean({
    description: 'False: a charge of play money, by test keys. Nobody paid for it.',
    examples: [true],
  }),
});

/** The contents of an invalid receipt are not returned, because nobody vouches for them. */
export const VerifyReply = Closed({
  valid: Type.Boolean({
    description: 'Whether the signature is valid and the ledger confirms the contents.',
    examples: [true],
  }),
  recorded: Type.Boolean({
    description: 'Whether the ledger confirms the contents, to the byte.',
    examples: [true],
  }),
  keyId: Type.Union([Type.String(), Type.Null()], {
    description: 'The key that signed it. Null when the signature is invalid.',
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
      id: Text('The id of the key, as named in receipts.', '1'),
      key: Text(
        'The HMAC-SHA-256 key, in base64url. It signs as well as it verifies: keep it secret.',
        'xwF1v9uYQbS0yJm3n5cR7tKp2eLd8hGa4oZi6sWq0Vk',
      ),
    }),
  ),
});
export type ReceiptKeysReply = Static<typeof ReceiptKeysReply>;

/** A JSON Web Key Set (RFC 7517, RFC 8037). */
export const PublicKeysReply = Closed({
  keys: Type.Array(
    Closed({
      kty: Type.Literal('OKP'),
      crv: Type.Literal('Ed25519'),
      alg: Type.Literal('EdDSA'),
      use: Type.Literal('sig'),
      kid: Text('The id of the key, as named in public receipts.', '1'),
      x: Text('The public key, in base64url.', '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo'),
    }),
  ),
});
export type PublicKeysReply = Static<typeof PublicKeysReply>;
