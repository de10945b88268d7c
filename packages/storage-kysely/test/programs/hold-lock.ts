import Database from 'better-sqlite3'

/** An application with the file open: holds the write lock until it is told to let go. */
const database = new Database(process.argv[2] ?? '', { timeout: 0 })
database.exec('begin immediate')
process.stdout.write('held')
process.stdin.once('data', () => {
  database.exec('commit')
  database.close()
  process.exit(0)
})
