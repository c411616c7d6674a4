/**
 * What an owner agrees to before the saved card is charged without being asked again. The console shows the text, and
 * the agreement is stored with it. Another text needs another version: nobody agrees to what was not shown.
 */
export const CONSENT_TERMS = {
  version: '2026-11-23',
  text:
    'You allow this service to charge your saved card when you or a program with your consumer key requests a ' +
    'top-up, and when an automatic top-up is due. You are not asked again for each payment. The payments of a ' +
    'calendar month (UTC), before tax, never exceed your monthly limit. Each payment is added to your balance and listed under ' +
    'Top-ups. You can change the limit or withdraw this permission on this page at any time.',
} as const;
