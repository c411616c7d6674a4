/** Which addresses an account may have: those that the sign-in library accepts, or their owners could not sign in. */

/** As in SMTP. */
export const EMAIL_LENGTH_MAX = 254;

export const EMAIL_PATTERN =
  /^(?:[\w'+-]+\.)*[\w'+-]*[\w+-]@(?:[A-Za-z0-9][A-Za-z0-9-]*\.)+[A-Za-z]{2,}$/;

export function isEmail(text: string): boolean {
  return text.length <= EMAIL_LENGTH_MAX && EMAIL_PATTERN.test(text);
}
