/** The prose of the API reference for cards, consent and automatic top-ups. */
import type { Operation } from '../operation.ts';

export const CARD_OPERATIONS = {
  listCards: {
    tag: 'Top-ups',
    summary: 'List your saved cards',
    description: 'Returns the saved cards, and which one direct and automatic top-ups charge.',
  },
  setUpCard: {
    tag: 'Top-ups',
    summary: 'Save a card',
    description:
      'Returns the URL of a page that saves a card, so that top-ups can charge it without you. The page takes no money. You must have given your consent first.',
  },
  chooseCard: {
    tag: 'Top-ups',
    summary: 'Choose a saved card',
    description:
      'Direct and automatic top-ups charge this card from now on. Automatic top-ups that pause after a decline of another card continue.',
  },
  removeCard: {
    tag: 'Top-ups',
    summary: 'Remove a saved card',
    description:
      'From now on, no top-up charges this card. If it was the chosen card, top-ups charge the newest one. Removing it again has the same result.',
  },
  getConsent: {
    tag: 'Top-ups',
    summary: 'Get your consent',
    description:
      'Returns how much may be taken from the saved card in a month, the terms, and the automatic top-ups.',
  },
  giveConsent: {
    tag: 'Top-ups',
    summary: 'Allow payments from your saved card',
    description:
      'Direct and automatic top-ups may take up to `ceiling` in a UTC month. Farebox records the terms that you ' +
      'agreed to. Send it again to change the ceiling. A top-up that was requested before and exceeds a lower ceiling ' +
      'fails with `consent_ceiling_reached`, unless the card is being charged already.',
  },
  withdrawConsent: {
    tag: 'Top-ups',
    summary: 'Withdraw your consent',
    description:
      'From now on, no direct or automatic top-up starts. One that was requested before fails with `consent_required`, ' +
      'unless the card is being charged already.',
  },
  setAutoTopUp: {
    tag: 'Top-ups',
    summary: 'Turn automatic top-ups on',
    description:
      'A charge that leaves less than `threshold` starts a top-up from the saved card. If something else is credited ' +
      'before the card is charged, and the balance is at the threshold again, it expires and takes no money. A repeated call ' +
      'replaces the settings and turns automatic top-ups on again if they turned themselves off.',
  },
  turnAutoTopUpOff: {
    tag: 'Top-ups',
    summary: 'Turn automatic top-ups off',
    description:
      'From now on, no automatic top-up starts. One that has begun expires, unless the card is being charged already.',
  },
} as const satisfies Record<string, Operation>;
