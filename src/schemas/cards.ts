/** Schemas of an owner's saved cards. */
import { Type, type Static } from 'typebox';
import { Closed, Text, Word } from './shapes.ts';

export const cardParams = { id: Text('The id of the card.', 'pm_1a2b3c') };

const SavedCard = Closed({
  id: Text('The id of the card.', 'pm_1a2b3c'),
  brand: Text('The card brand.', 'visa'),
  lastFour: Text('The last four digits.', '4242'),
  expiresOn: Text('The last month in which it is valid.', '2030-11'),
  isCharged: Type.Boolean({
    description:
      'Whether direct and automatic top-ups charge this card: the one that the owner chose, or else the newest.',
    examples: [true],
  }),
});

export const CardsReply = Closed({
  state: Word(
    ['known', 'unknown'],
    '`unknown`: the payment processor cannot be reached, so the list is empty.',
  ),
  cards: Type.Array(SavedCard, { description: 'Newest first, at most 100.' }),
});
export type CardsReply = Static<typeof CardsReply>;

export const CardSetupReply = Closed({
  url: Text('The page that saves the card.', 'https://checkout.stripe.com/c/pay/cs_live_a1'),
});
export type CardSetupReply = Static<typeof CardSetupReply>;
