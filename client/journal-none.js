/** Edge runtimes have no files. */
export async function openJournal() {
  throw new TypeError('Farebox: a journal needs Node');
}
