/** Schemas of keys, as their owner sees and creates them, and of the session. */
import { Type, type Static } from 'typebox';
import { MODES } from '../domain/mode.ts';
import {
  Closed,
  DollarsAskedOrNull,
  DollarsOrNull,
  Id,
  OrNull,
  PrintableText,
  Text,
  TimeOf,
  Timestamp,
  Word,
} from './shapes.ts';

const OVERLAP_SECONDS_MAX = 30 * 86_400;
const Kind = Word(
  ['consumer', 'developer', 'legacy'],
  'What the key is for. A secret key has the kind `developer`.',
);
const ModeOfKey = Word(MODES, 'Whether it spends real money (`live`) or play money (`test`).');
const KeyId = Id('key', 'The id of the key.');
const BudgetId = Type.Optional(
  Id('budget', 'The budget that the key spends from. Absent: a key of the account.'),
);
const Name = OrNull(Type.String(), 'The name that its owner gave it, or null.');

export const KeyBody = Closed({
  kind: Kind,
  mode: Type.Optional({ ...ModeOfKey, default: 'live' }),
  name: Type.Optional(PrintableText(100, 'Claude Code')),
});
export type KeyBody = Static<typeof KeyBody>;

export const RollBody = Closed({
  overlapSeconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: OVERLAP_SECONDS_MAX,
      default: 0,
      description: 'How many seconds the old key keeps working.',
      examples: [86_400],
    }),
  ),
});
export type RollBody = Static<typeof RollBody>;

export const releaseHolds = Type.Optional(
  Type.Boolean({
    default: false,
    description:
      'Whether open holds by these keys are released. Otherwise they can still be captured, so that a running call ' +
      'is paid.',
    examples: [true],
  }),
);

export const RevokeBody = Closed({ releaseHolds });
export type RevokeBody = Static<typeof RevokeBody>;

export const KeyReply = Closed({
  id: KeyId,
  kind: Kind,
  mode: ModeOfKey,
  budgetId: BudgetId,
  name: Name,
  lastFour: Text('The last four characters of the key.', 'x9Qz'),
  createdAt: Timestamp,
  expiresAt: OrNull(TimeOf('When it stops working.'), 'When it stops working, or null.'),
  revokedAt: OrNull(TimeOf('When it was revoked.'), 'When it was revoked, or null.'),
  lastUsedAt: OrNull(
    TimeOf('When it was last used.'),
    'When it was last used, or null if no use is recorded yet. It may be a minute late.',
  ),
});
export type KeyReply = Static<typeof KeyReply>;

const chargeable = Word(
  ['open', 'closed'],
  'Whether consumer keys of the account can be charged. Spend keys always can.',
);

export const AccountKeysBody = Closed({
  charge: Type.Optional(chargeable),
  developerDayLimit: Type.Optional(
    DollarsAskedOrNull(
      'Dollars that one developer can charge to consumer keys of the account in a UTC day. A number, or a decimal string ' +
        'such as "0.05". Null: no limit. Setting it sets the limit of every developer.',
      5,
    ),
  ),
});
export type AccountKeysBody = Static<typeof AccountKeysBody>;

export const AccountKeysReply = Closed({
  charge: chargeable,
  developerDayLimit: DollarsOrNull(
    'Dollars that one developer can charge to consumer keys of the account in a UTC day, or null.',
    5,
  ),
});
export type AccountKeysReply = Static<typeof AccountKeysReply>;

export const KeysReply = Closed({ keys: Type.Array(KeyReply) });
export type KeysReply = Static<typeof KeysReply>;

export const NewKeyReply = Closed({
  id: KeyId,
  kind: Kind,
  mode: ModeOfKey,
  budgetId: BudgetId,
  name: Name,
  key: Text(
    'The key. Only this response has it, and the response to a retry with the same Idempotency-Key.',
    'fare_ck_live_4eC39HqLyjWDarjtT1zdp7dc',
  ),
});
export type NewKeyReply = Static<typeof NewKeyReply>;

export const SessionReply = Closed({
  email: Text('The address that signed in.', 'you@example.com'),
  consumerId: Id('consumer', 'Your consumer id.'),
  developerId: Id('developer', 'Your developer id.'),
  keyPrefix: Text('The prefix of every key.', 'fare'),
  apiUrl: Text('The URL of the API for programs.', 'https://billing.example.com'),
  operator: Type.Boolean({
    description:
      'Whether you are an operator. /v1/operator also requires two-factor authentication.',
    examples: [false],
  }),
  simulated: Type.Boolean({
    description: 'Whether payments are simulated, so that no money moves.',
    examples: [false],
  }),
  taxed: Type.Boolean({
    description: 'Whether tax is added to top-ups.',
    examples: [false],
  }),
});
export type SessionReply = Static<typeof SessionReply>;
