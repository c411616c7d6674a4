/** The rate card of the tool that tests charge by units. */
export const CARD = { input: 0.0000025, output: 0.00001 };
/** What a call uses, and what that costs by the card. */
export const UNITS = { input: 1_200, output: 350 };
export const COST = 0.0065;
