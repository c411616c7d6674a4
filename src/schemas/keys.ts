/** Wire shapes of keys as their owner sees and makes them, and of the owner itself. */
import { Type, type Static } from 'typebox';
import { PrintableText, Timestamp } from './shapes.ts';

const Kind = Type.Union([
  Type.Literal('consumer'),
  Type.Literal('developer'),
  Type.Literal('legacy'),
]);
const Maybe = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) =>
  Type.Union([schema, Type.Null()]);

export const OVERLAP_SECONDS_MAX = 30 * 86_400;

export const KeyBody = Type.Object({ kind: Kind, name: Type.Optional(PrintableText(100)) });
export type KeyBody = Static<typeof KeyBody>;

export const RollBody = Type.Object({
  overlapSeconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: OVERLAP_SECONDS_MAX,
      description: 'How long the old key still works; 0, the default: not at all',
    }),
  ),
});
export type RollBody = Static<typeof RollBody>;

export const ListedKey = Type.Object({
  id: Type.String(),
  kind: Kind,
  name: Maybe(Type.String()),
  lastFour: Type.String(),
  createdAt: Timestamp,
  expiresAt: Maybe(Timestamp),
  revokedAt: Maybe(Timestamp),
  lastUsedAt: Maybe(Timestamp),
});

export const KeysAnswer = Type.Object({ keys: Type.Array(ListedKey) });

export const NewKeyAnswer = Type.Object({
  id: Type.String(),
  kind: Kind,
  name: Maybe(Type.String()),
  key: Type.String({ description: 'Shown this once' }),
});

export const SessionAnswer = Type.Object({
  email: Type.String(),
  consumerId: Type.String(),
  developerId: Type.String(),
  keyPrefix: Type.String(),
  simulated: Type.Boolean({ description: 'Payments are simulated; no money moves' }),
});
