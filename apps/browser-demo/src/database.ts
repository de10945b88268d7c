/** The file of the demo in OPFS. */
export const DATABASE = 'durably-demo.sqlite3'
